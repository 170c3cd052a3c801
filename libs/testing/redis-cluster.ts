import { eventually } from './eventually.ts';
import { cutReplication, freePorts, SERVER_LINES } from './redis-sentinels.ts';
import { REDIS_USER, RedisGroup, type RedisServer } from './redis-server.ts';

const MASTERS = 3;
const NODES = 2 * MASTERS;
const SLOTS = 16_384;
const NODE_TIMEOUT_MS = 1_000;

/** Three masters with one replica each, with user and password. A restarted node is empty. */
export interface RedisCluster {
  url: string;
  nodes: RedisServer[];
  /** Returns the master of this key's slot. */
  masterOf(key: string): Promise<RedisServer>;
  /** Moves the slot key by key, like `redis-cli --cluster reshard`. Resolves when all nodes know the new owner. */
  migrateSlotOf(key: string, to: RedisServer): Promise<void>;
  /** Stops replication from this master, so that a fail-over loses later writes. */
  cutReplication(master: RedisServer): Promise<void>;
  /** Stops all servers and deletes their files. */
  stop(): Promise<void>;
}

export async function startRedisCluster(options: { tls?: boolean } = {}): Promise<RedisCluster> {
  const group = await RedisGroup.open('a Redis cluster', options);
  try {
    const ports = await freePorts(2 * NODES);
    const starting = ports
      .slice(0, NODES)
      .map((port, i) => group.start(port, [...SERVER_LINES, ...clusterLines(port, ports[NODES + i]!)]));
    const nodes = await Promise.all(starting);
    await join(nodes, ports.slice(NODES));
    return clusterOf(group, nodes);
  } catch (error) {
    await group.stop();
    throw error;
  }
}

const clusterLines = (port: number, busPort: number): string[] => [
  'cluster-enabled yes',
  `cluster-config-file ${port}.nodes`,
  `cluster-port ${busPort}`,
  `cluster-node-timeout ${NODE_TIMEOUT_MS}`,
  // A replica may take over with a copy of any age, because specs stop replication.
  'cluster-replica-validity-factor 0',
];

const idOf = async (node: RedisServer): Promise<string> => (await node.ask('CLUSTER', 'MYID')) as string;

async function join(nodes: readonly RedisServer[], busPorts: readonly number[]): Promise<void> {
  const [first] = nodes;
  for (const [i, node] of nodes.entries()) {
    await node.ask('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    if (i > 0) await first!.ask('CLUSTER', 'MEET', '127.0.0.1', node.port, busPorts[i]!);
    const slot = (nth: number): number => Math.floor((nth * SLOTS) / MASTERS);
    if (i < MASTERS) await node.ask('CLUSTER', 'ADDSLOTSRANGE', slot(i), slot(i + 1) - 1);
  }
  for (const [i, node] of nodes.slice(MASTERS).entries()) {
    const masterId = await idOf(nodes[i]!);
    const copies = async (): Promise<unknown> => node.ask('CLUSTER', 'REPLICATE', masterId);
    await eventually(async () => (await copies()) === 'OK', { what: 'a replica knows its master' });
  }
  const isReady = async (node: RedisServer): Promise<boolean> => {
    const info = (await node.ask('CLUSTER', 'INFO')) as string;
    const knowsAll = /cluster_state:ok/.test(info) && info.includes(`cluster_known_nodes:${NODES}`);
    const shards = (await node.ask('CLUSTER', 'SLOTS')) as unknown[][];
    return knowsAll && shards.length === MASTERS && shards.every((shard) => shard.length === 4);
  };
  const areReady = async (): Promise<boolean> => (await Promise.all(nodes.map(isReady))).every(Boolean);
  await eventually(areReady, { what: 'the cluster is ready', timeoutMs: 30_000 });
  const isCopied = async (node: RedisServer): Promise<boolean> => (await node.info('connected_slaves')) === '1';
  const areCopied = async (): Promise<boolean> =>
    (await Promise.all(nodes.slice(0, MASTERS).map(isCopied))).every(Boolean);
  await eventually(areCopied, { what: 'each master has a replica', timeoutMs: 30_000 });
}

function clusterOf(group: RedisGroup, nodes: RedisServer[]): RedisCluster {
  const running = (): RedisServer[] => nodes.filter(({ answers }) => answers);
  const slotOf = async (key: string): Promise<number> => (await running()[0]!.ask('CLUSTER', 'KEYSLOT', key)) as number;
  const hosts = nodes.map(({ host }) => host).join();
  return {
    url: `${group.scheme}://${group.credentials}${hosts}${group.parameters}`,
    nodes,
    masterOf: async (key) => ownerOf(await slotOf(key), running()[0]!, nodes),
    migrateSlotOf: async (key, to) => migrateSlot(await slotOf(key), to, running()),
    cutReplication: async (master) => {
      const id = await idOf(master);
      const replicas: RedisServer[] = [];
      for (const node of running()) {
        const line = ((await node.ask('CLUSTER', 'NODES')) as string)
          .split('\n')
          .find((text) => text.includes('myself'))!;
        if (line.split(' ')[3] === id) replicas.push(node);
      }
      await cutReplication(master, replicas);
    },
    stop: () => group.stop(),
  };
}

/** Returns the owner of the slot according to one node. */
async function ownerOf(slot: number, asked: RedisServer, nodes: readonly RedisServer[]): Promise<RedisServer> {
  type Shard = [from: number, to: number, master: [host: string, port: number]];
  const shards = (await asked.ask('CLUSTER', 'SLOTS')) as Shard[];
  const owner = shards.find(([from, to]) => from <= slot && slot <= to);
  return nodes.find(({ port }) => port === owner?.[2][1])!;
}

async function migrateSlot(slot: number, to: RedisServer, running: readonly RedisServer[]): Promise<void> {
  const from = await ownerOf(slot, to, running);
  const [fromId, toId] = [await idOf(from), await idOf(to)];
  await to.ask('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
  await from.ask('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
  const auth = ['AUTH2', REDIS_USER.username, REDIS_USER.password];
  for (;;) {
    const keys = (await from.ask('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[];
    if (keys.length === 0) break;
    await from.ask('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, ...auth, 'KEYS', ...keys);
  }
  for (const node of [to, from]) await node.ask('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
  const areAgreed = async (): Promise<boolean> => {
    for (const node of running) if ((await ownerOf(slot, node, running)) !== to) return false;
    return true;
  };
  await eventually(areAgreed, { what: 'all nodes know the owner of the slot' });
}
