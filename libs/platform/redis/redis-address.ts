import { isIPv6 } from 'node:net';

export interface RedisHost {
  host: string;
  port: number;
}

/** Paths of PEM files, as `redis-cli` names them. */
export interface RedisTls {
  cacert?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  /** The name in the servers' certificates, if clients connect to other names or to IP addresses. */
  servername?: string | undefined;
}

export interface RedisAddress {
  kind: 'single' | 'sentinel' | 'cluster';
  /** One server, the Sentinels, or some nodes of the cluster. */
  hosts: RedisHost[];
  username?: string | undefined;
  password?: string | undefined;
  db: number;
  /** Undefined without TLS. */
  tls?: RedisTls | undefined;
  /** The IP version of resolved host names; 0 means any. */
  family?: number | undefined;
  sentinel?: { master: string; username?: string | undefined; password?: string | undefined } | undefined;
}

/** The protocols that a Redis address may start with. */
export const REDIS_PROTOCOLS = ['', '+sentinel', '+cluster'].flatMap((kind) => [`redis${kind}`, `rediss${kind}`]);

/** Returns whether this is the address of a Redis, and not of a PostgreSQL. */
export function isRedisUrl(url: string | undefined): url is string {
  return url !== undefined && REDIS_PROTOCOLS.some((protocol) => url.startsWith(`${protocol}://`));
}

const DEFAULT_PORT = { single: 6379, sentinel: 26379, cluster: 6379 };
const ADDRESS =
  /^redis(?<tls>s?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?<authority>[^/?#]*)(?<path>[^?#]*)(?:\?(?<query>[^#]*))?$/;
const HOST = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[\w.-]+))(?::(?<port>\d{1,5}))?$/;

const TLS_PARAMETERS = ['cacert', 'cert', 'key', 'servername'];
const SENTINEL_PARAMETERS = ['sentinelUsername', 'sentinelPassword'];

/**
 * Parses `redis[s][+sentinel|+cluster]://[user:password@]host[:port],…[/…][?…]`. Several hosts without a kind are a cluster.
 * `URL` does not support several hosts.
 *
 * @throws RangeError that does not repeat any of the text, because any part may contain a password
 */
export function parseRedisAddress(text: string): RedisAddress {
  const { tls, kind: named, authority = '', path = '', query } = ADDRESS.exec(text)?.groups ?? refuse(NOT_AN_ADDRESS);
  const at = authority.lastIndexOf('@');
  const hostList = authority.slice(at + 1).split(',');
  const kind = (named ?? (hostList.length > 1 ? 'cluster' : 'single')) as RedisAddress['kind'];
  const parameters = parseParameters(query ?? '', [
    'family',
    ...(tls ? TLS_PARAMETERS : []),
    ...(kind === 'sentinel' ? SENTINEL_PARAMETERS : []),
  ]);
  return {
    kind,
    hosts: hostList.map((host, i) => parseHost(host, i + 1, DEFAULT_PORT[kind])),
    ...(at === -1 ? {} : parseUser(authority.slice(0, at))),
    ...parsePath(path, kind, parameters),
    ...(tls ? { tls: parseTls(parameters) } : {}),
    ...parseFamily(parameters['family']),
  };
}

const ENCODE = 'special characters in a user name or password must be percent-encoded';
const NOT_AN_ADDRESS = `is not a Redis address; ${ENCODE}`;

function refuse(why: string): never {
  throw new RangeError(why);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse(`contains a % without two hex digits; ${ENCODE}`);
  }
}

function parseUser(text: string): Pick<RedisAddress, 'username' | 'password'> {
  const colon = text.indexOf(':');
  const [username, password] = colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
  return { username: decode(username) || undefined, password: decode(password) || undefined };
}

function parseHost(text: string, nth: number, defaultPort: number): RedisHost {
  const { v6, name, port } = HOST.exec(text)?.groups ?? {};
  const host = v6 === undefined ? name : isIPv6(v6) ? v6 : undefined;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535)
    refuse(`host ${nth} must be a name, an IPv4 address or an [IPv6 address], optionally with :port; ${ENCODE}`);
  return { host, port: number };
}

function parsePath(
  path: string,
  kind: RedisAddress['kind'],
  { sentinelUsername: username, sentinelPassword: password }: Record<string, string>,
): Pick<RedisAddress, 'db' | 'sentinel'> {
  const parts = path.split('/').slice(1);
  const master = kind === 'sentinel' ? decode(parts.shift() ?? '') : undefined;
  if (master === '') refuse('must end with /<master name> after the Sentinels');
  const [db = '', ...more] = parts;
  if (more.length > 0 || !/^\d{0,5}$/.test(db))
    refuse(`must end with ${kind === 'sentinel' ? '/<master name>/' : '/'}<database number>, or omit the number`);
  if (kind === 'cluster' && Number(db) !== 0) refuse('must not name a database; a cluster has only database 0');
  return { db: Number(db), ...(master === undefined ? {} : { sentinel: { master, username, password } }) };
}

/** Parses the query without URLSearchParams, which decodes + as a space. */
function parseParameters(query: string, known: string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...value] = pair.split('=');
    if (!known.includes(name)) refuse(`has an unknown parameter; allowed: ${known.join(', ')}`);
    if (name in parameters) refuse(`has the parameter ${name} more than once`);
    parameters[name] = decode(value.join('='));
    if (parameters[name] === '') refuse(`has the parameter ${name} without a value`);
  }
  return parameters;
}

function parseTls({ cacert, cert, key, servername }: Record<string, string>): RedisTls {
  if ((cert === undefined) !== (key === undefined)) refuse('must have the parameters cert and key together');
  return { cacert, cert, key, servername };
}

function parseFamily(family: string | undefined): Pick<RedisAddress, 'family'> {
  if (family === undefined) return {};
  return /^[046]$/.test(family) ? { family: Number(family) } : refuse('must have a family of 4, 6 or 0 (any)');
}
