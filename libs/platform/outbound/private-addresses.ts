import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * IPv4 that is not the public internet: IANA's registry of special-purpose addresses, multicast and what is reserved.
 * 169.254.169.254, where clouds keep credentials, is link-local.
 */
const SPECIAL_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/** What of IPv6 is in use as public at all. In the last two an IPv4 address is contacted, which is looked at itself. */
const PUBLIC_V6: readonly (readonly [string, number])[] = [
  ['2000::', 3],
  ['::ffff:0.0.0.0', 96],
  ['64:ff9b::', 96],
];

/** And what is special within that: protocol assignments (Teredo among them), documentation, 6to4. */
const SPECIAL_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const special = new BlockList();
const publicV6 = new BlockList();
for (const [net, bits] of SPECIAL_V4) {
  // The list looks at IPv4-mapped addresses by the same rule; NAT64 (RFC 6052) it does not know.
  special.addSubnet(net, bits, 'ipv4');
  special.addSubnet(`64:ff9b::${net}`, 96 + bits, 'ipv6');
}
for (const [net, bits] of SPECIAL_V6) special.addSubnet(net, bits, 'ipv6');
for (const [net, bits] of PUBLIC_V6) publicV6.addSubnet(net, bits, 'ipv6');

/** Whether an address, IPv4 or IPv6, is one of the public internet. What is no address is not. */
export function isPublicAddress(address: string): boolean {
  const plain = withoutZone(address);
  const family = isIP(plain);
  if (family === 4) return !special.check(plain, 'ipv4');
  return family === 6 && publicV6.check(plain, 'ipv6') && !special.check(plain, 'ipv6');
}

/** One entry of ALLOWED_PRIVATE_ADDRESSES: what it names, and on which port; null for all. */
interface AllowedEntry {
  name: string | null;
  addresses: BlockList | null;
  port: number | null;
}

/** Whether the operator lets a host be contacted at an address, however private. */
export type AllowedAddresses = (target: { host: string; address: string; port: number }) => boolean;

/**
 * Reads a comma list of host names, addresses and CIDRs, each optionally with a port (`[…]:port` for IPv6); `*` is all. A
 * name that is listed is allowed wherever it resolves to. Throws RangeError, which names the wrong entry.
 */
export function parseAllowedAddresses(list: string): AllowedAddresses {
  const entries = list
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(parseEntry);
  return ({ host, address, port }) => {
    const name = normalizedName(host);
    const plain = withoutZone(address);
    const family = isIPv6(plain) ? 'ipv6' : 'ipv4';
    return entries.some(
      (entry) =>
        (entry.port === null || entry.port === port) &&
        (entry.addresses === null
          ? entry.name === null || entry.name === name
          : isIP(plain) !== 0 && entry.addresses.check(plain, family)),
    );
  };
}

function parseEntry(text: string): AllowedEntry {
  const [, bracketed, bare = '', digits] = /^(?:\[([^\]]+)\]|([^:]*|[^:]*:[^:]*:.*))(?::(\d+))?$/.exec(text) ?? [];
  const what = bracketed ?? bare;
  const port = digits === undefined ? null : Number(digits);
  const addresses = parseAddresses(what);
  const isName =
    /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?$/i.test(what) && !/^[\d.]+$/.test(what) && bracketed === undefined;
  if ((port !== null && (port < 1 || port > 65_535)) || (addresses === null && what !== '*' && !isName)) {
    throw new RangeError(`${JSON.stringify(text)} is not a host name, an address or a CIDR, with or without :port`);
  }
  return { name: what === '*' || addresses !== null ? null : normalizedName(what), addresses, port };
}

function parseAddresses(text: string): BlockList | null {
  const [net = '', bits, ...rest] = text.split('/');
  const family = isIP(net);
  if (family === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return null;
  const most = family === 4 ? 32 : 128;
  if (bits !== undefined && Number(bits) > most) return null;
  const list = new BlockList();
  list.addSubnet(net, bits === undefined ? most : Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  return list;
}

const normalizedName = (name: string): string => name.toLowerCase().replace(/\.$/, '');
/** `fe80::1%eth0` names the link as well. */
const withoutZone = (address: string): string => address.replace(/%.*$/, '');
