import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The only part of IPv6 that IANA assigns to the public internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** IPv6 addresses that reach the IPv4 address in their last 32 bits: IPv4-mapped and NAT64 (RFC 6052). */
const EMBEDDED_V4 = ['::ffff:0:0/96', '64:ff9b::/96'].map((network) => ipaddr.IPv6.parseCIDR(network));

/** Returns whether an IPv4 or IPv6 address belongs to the public internet. Returns false for other text. */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === null) return false;
  if (EMBEDDED_V4.some((network) => parsed.match(network))) {
    return new ipaddr.IPv4(parsed.toByteArray().slice(12)).range() === 'unicast';
  }
  return parsed.match(GLOBAL_UNICAST) && parsed.range() === 'unicast';
}

/** Parses an address without its zone (`%eth0`). Returns IPv4 as IPv4-mapped IPv6, and null for other text. */
function parseAddress(text: string): ipaddr.IPv6 | null {
  const plain = text.replace(/%.*$/, '');
  if (isIP(plain) === 0) return null;
  // ipaddr.js would read `::127.0.0.1` as `::ffff:127.0.0.1`, but sockets do not.
  const parsed = ipaddr.parse(plain.replace(/^::(?=\d+\.)/, '0::'));
  return parsed instanceof ipaddr.IPv4 ? parsed.toIPv4MappedAddress() : parsed;
}

/** One entry of ALLOWED_PRIVATE_ADDRESSES: a name or a network, and a port. Null means any. */
interface AllowedEntry {
  name: string | null;
  network: Network | null;
  port: number | null;
}

/** An address, and the number of its bits that identify the network. */
type Network = [ipaddr.IPv6, number];

/** Returns whether the operator allows connections to a host at an address, even a private one. */
export type AllowedAddresses = (target: { host: string; address: string; port: number }) => boolean;

/**
 * Parses host names, addresses and CIDRs, separated by commas, each optionally with a port (`[…]:port` for IPv6). `*` allows all.
 * A listed name is allowed at every address that it resolves to. Throws a RangeError that names the wrong entry.
 */
export function parseAllowedAddresses(list: string): AllowedAddresses {
  const entries = list
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(parseEntry);
  return ({ host, address, port }) => {
    const name = normalizedName(host);
    const parsed = parseAddress(address);
    return entries.some(
      (entry) =>
        (entry.port === null || entry.port === port) &&
        (entry.network === null
          ? entry.name === null || entry.name === name
          : parsed !== null && parsed.match(entry.network)),
    );
  };
}

function parseEntry(text: string): AllowedEntry {
  const [, bracketed, bare = '', digits] = /^(?:\[([^\]]+)\]|([^:]*|[^:]*:[^:]*:.*))(?::(\d+))?$/.exec(text) ?? [];
  const what = bracketed ?? bare;
  const port = digits === undefined ? null : Number(digits);
  const network = parseNetwork(what);
  const isName =
    /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?$/i.test(what) && !/^[\d.]+$/.test(what) && bracketed === undefined;
  if ((port !== null && (port < 1 || port > 65_535)) || (network === null && what !== '*' && !isName)) {
    throw new RangeError(`${JSON.stringify(text)} is not a host name, an address or a CIDR, with or without :port`);
  }
  return { name: what === '*' || network !== null ? null : normalizedName(what), network, port };
}

function parseNetwork(text: string): Network | null {
  const [net = '', bits, ...rest] = text.split('/');
  // A zone, such as in fe80::1%eth0, is of no use in a list: it names an interface of one machine.
  const address = net.includes('%') ? null : parseAddress(net);
  if (address === null || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return null;
  const offset = isIPv4(net) ? 96 : 0;
  const length = bits === undefined ? 128 : offset + Number(bits);
  return length > 128 ? null : [address, length];
}

const normalizedName = (name: string): string => name.toLowerCase().replace(/\.$/, '');
