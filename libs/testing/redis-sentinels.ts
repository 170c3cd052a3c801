import { findFreePort } from '../platform/index.ts';
import { eventually } from './eventually.ts';
import { REDIS_USER, RedisGroup, type RedisServer } from './redis-server.ts';

const MASTER = 'main';
const DOWN_AFTER_MS = 1_000;
const SENTINELS = 3;
const REPLICAS = 2;

/** A master, two replicas and three Sentinels, with user and password. A restarted server is empty. */
export interface RedisSentinels {
  url: string;
  /** The servers, not the Sentinels. */
  servers: RedisServer[];
  sentinels: RedisServer[];
  /** Returns the master that the Sentinels name. */
  master(): Promise<RedisServer>;
  /** Stops replication, so that a fail-over loses later writes. */
  cutReplication(): Promise<void>;
  /** Stops all servers and deletes their files. */
  stop(): Promise<void>;
}

export async function startRedisSentinels(options: { tls?: boolean } = {}): Promise<RedisSentinels> {
  const group = await RedisGroup.open('Redis Sentinels', options);
  try {
    return await start(group);
  } catch (error) {
    await group.stop();
    throw error;
  }
}

async function start(group: RedisGroup): Promise<RedisSentinels> {
  const ports = await freePorts(1 + REPLICAS + SENTINELS);
  const [masterPort = 0, ...others] = ports;
  const first = await group.start(masterPort, SERVER_LINES);
  const replicas = others
    .slice(0, REPLICAS)
    .map((port) => group.start(port, [...SERVER_LINES, `replicaof 127.0.0.1 ${masterPort}`]));
  const servers = [first, ...(await Promise.all(replicas))];
  const areCopies = async (): Promise<boolean> => (await first.info('connected_slaves')) === `${REPLICAS}`;
  await eventually(areCopies, { what: 'the replicas are connected' });
  const watching = others.slice(REPLICAS).map((port) => group.start(port, sentinelLines(masterPort), ['--sentinel']));
  const sentinels = await Promise.all(watching);
  await eventually(() => knowEachOther(sentinels), { what: 'the Sentinels know each other', timeoutMs: 30_000 });

  const master = async (): Promise<RedisServer> => {
    const address = (await sentinels[0]!.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)) as string[];
    return servers.find(({ port }) => `${port}` === address[1])!;
  };
  return {
    url: `${group.scheme}+sentinel://${group.credentials}${sentinels.map(({ host }) => host).join()}/${MASTER}${parametersOf(group)}`,
    servers,
    sentinels,
    master,
    cutReplication: async () => {
      const current = await master();
      const copies = servers.filter((server) => server !== current && server.answers);
      await cutReplication(current, copies);
    },
    stop: () => group.stop(),
  };
}

/** Stops replication, also in a cluster: the replicas reconnect with a wrong password. */
export async function cutReplication(master: RedisServer, replicas: readonly RedisServer[]): Promise<void> {
  await Promise.all(replicas.map((replica) => replica.ask('CONFIG', 'SET', 'masterauth', 'wrong')));
  await master.ask('CLIENT', 'KILL', 'TYPE', 'replica');
  const isCut = async (): Promise<boolean> => (await master.info('connected_slaves')) === '0';
  await eventually(isCut, { what: 'no replica is connected' });
}

export function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, findFreePort));
}

export const SERVER_LINES = [
  'save ""',
  'maxmemory-policy noeviction',
  'repl-diskless-sync-delay 0',
  `masteruser ${REDIS_USER.username}`,
  `masterauth ${REDIS_USER.password}`,
];

const sentinelLines = (masterPort: number): string[] => [
  `sentinel monitor ${MASTER} 127.0.0.1 ${masterPort} 2`,
  `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
  `sentinel failover-timeout ${MASTER} 5000`,
  `sentinel auth-user ${MASTER} ${REDIS_USER.username}`,
  `sentinel auth-pass ${MASTER} ${REDIS_USER.password}`,
  `sentinel sentinel-user ${REDIS_USER.username}`,
  `sentinel sentinel-pass ${REDIS_USER.password}`,
];

/** Adds the Sentinels' user, which is the servers' user. */
function parametersOf({ parameters }: RedisGroup): string {
  const { username, password } = REDIS_USER;
  const own = `sentinelUsername=${username}&sentinelPassword=${encodeURIComponent(password)}`;
  return `${parameters === '' ? '?' : `${parameters}&`}${own}`;
}

async function knowEachOther(sentinels: readonly RedisServer[]): Promise<boolean> {
  for (const sentinel of sentinels) {
    const fields = (await sentinel.ask('SENTINEL', 'MASTER', MASTER)) as string[];
    const field = (name: string): string | undefined => fields[fields.indexOf(name) + 1];
    if (field('num-slaves') !== `${REPLICAS}` || field('num-other-sentinels') !== `${SENTINELS - 1}`) return false;
  }
  return true;
}
