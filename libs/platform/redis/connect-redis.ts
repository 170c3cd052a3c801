import { readFileSync } from 'node:fs';
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { parseRedisAddress, type RedisAddress, type RedisHost, type RedisTls } from './redis-address.ts';

/** A client of one server or of a cluster. The latter has a connection to each node that it needs. */
export type RedisClient = Redis | Cluster;

const CONNECT_TIMEOUT_MS = 2_000;
/** The longest silence of a server or Sentinel before the client disconnects. */
const SILENCE_MS = 1_000;

/**
 * Fails commands immediately without a connection, and after a second of silence. A client of one server, also by Sentinels,
 * queues and resends nothing. A client of a cluster queues a command while it connects to a node. It resends the command when
 * the connection closes, so the command may run twice. `retryDelayOnFailover: 0` prevents that, but then commands also fail
 * while the client connects to a node of a healthy cluster.
 */
export const FAIL_FAST = {
  socketTimeout: SILENCE_MS,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
} satisfies RedisOptions;

/** Returns a strategy that reconnects forever, with delays that grow up to this. Milliseconds. */
export const retryEvery =
  (maxDelayMs: number) =>
  (times: number): number =>
    Math.min(50 * times, maxDelayMs);

/**
 * Creates a client for any address that `parseRedisAddress` accepts: one server, the master of a Sentinel group, or a
 * cluster. Returns before it is connected, like the constructors of ioredis. The caller must listen to `error`.
 *
 * @throws RangeError for an invalid address, and the file system's error if a certificate cannot be read
 */
export function connectRedis(url: string, options: RedisOptions): RedisClient {
  const address = parseRedisAddress(url);
  if (address.kind !== 'cluster') return connectOne(address, options);
  return new Cluster(address.hosts, clusterOptions(address, options));
}

/**
 * Creates a client with one connection, for pub/sub. A cluster forwards messages between all nodes, so the client connects
 * to one node of the address. When the connection closes, it connects to the next one. It needs no slots and no redirections.
 */
export function connectRedisNode(url: string, options: RedisOptions): Redis {
  const address = parseRedisAddress(url);
  const { kind, hosts } = address;
  if (kind !== 'cluster') return connectOne(address, options);
  let nth = Math.floor(Math.random() * hosts.length);
  const next = (): RedisHost => hosts[nth++ % hosts.length]!;
  const redis = connectOne({ ...address, hosts: [next()] }, options);
  redis.on('close', () => Object.assign(redis.options, next()));
  return redis;
}

/** Returns the connections of a client: its only one, or those to all known nodes or masters of a cluster. */
export function serversOf(client: RedisClient, role: 'all' | 'master' = 'all'): Redis[] {
  return client instanceof Cluster ? client.nodes(role) : [client];
}

function connectOne(address: RedisAddress, options: RedisOptions): Redis {
  const { hosts, sentinel, family, tls } = address;
  const common = { ...serverOptions(address), db: address.db, ...options };
  if (sentinel === undefined) return new Redis({ ...common, ...hosts[0] });
  return new Redis({
    ...common,
    sentinels: hosts.map((host) => ({ ...host, ...(family === undefined ? {} : { family }) })),
    name: sentinel.master,
    ...(sentinel.username === undefined ? {} : { sentinelUsername: sentinel.username }),
    ...(sentinel.password === undefined ? {} : { sentinelPassword: sentinel.password }),
    // ioredis asks one Sentinel after the other, and would wait forever for a silent one.
    sentinelCommandTimeout: SILENCE_MS,
    ...(options.retryStrategy === null ? { sentinelRetryStrategy: () => null } : {}),
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(tls) }),
  });
}

function serverOptions({ username, password, family, tls }: RedisAddress): RedisOptions {
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    reconnectOnError: isNoLongerMaster,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(family === undefined ? {} : { family }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
  };
}

/**
 * Returns whether the error shows that the server may no longer be the master: it was demoted, or it rejects writes without
 * replicas. A new connection leads to the new master. A cluster answers MOVED instead. Redis 6 wraps the error of a
 * script: `ERR Error running script … -READONLY …`.
 */
function isNoLongerMaster({ message }: Error): boolean {
  return /\b(READONLY|NOREPLICAS) /.test(message);
}

/** Returns cluster options. A client that fails fast redirects and retries a command for at most a second. */
function clusterOptions(address: RedisAddress, options: RedisOptions): ClusterOptions {
  const { retryStrategy = null, enableOfflineQueue = true, lazyConnect = false, ...others } = options;
  const { socketTimeout: commandTimeout } = options;
  return {
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue,
    lazyConnect,
    // Only errors and redirections refresh the slots. A periodic refresh never ends if the client closes meanwhile.
    slotsRefreshInterval: 0,
    // Keeps host names, because certificates contain them. Node resolves them when it connects.
    dnsLookup: (name, done) => done(null, name),
    redisOptions: {
      ...serverOptions(address),
      ...(commandTimeout === undefined ? {} : { commandTimeout }),
      ...others,
    },
  };
}

function tlsOptions({ cacert, cert, key, servername }: RedisTls): NonNullable<RedisOptions['tls']> {
  return {
    ...(cacert === undefined ? {} : { ca: readFileSync(cacert) }),
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
    ...(servername === undefined ? {} : { servername }),
  };
}
