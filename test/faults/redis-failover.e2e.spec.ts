import {
  describeWithPrivateRedis,
  eventually,
  type RedisCluster,
  type RedisSentinels,
  type RedisServer,
  reportFigure,
  reportLatency,
  startRedisCluster,
  startRedisSentinels,
} from '#testing';
import { freshSeed, seededRandom } from '../support/random.ts';
import { startStandardSystem, type StandardSystem } from '../support/standard-system.ts';
import { isLong, upTo } from '../support/system.ts';

const LOAD = isLong ? {} : { threads: 12, messages: 2, pieces: 10 };
/** The bound from the master's failure until Runs continue. Here the servers detect a dead master after 1 s. */
const GOES_ON_MS = 15_000;

// A replica lacks the master's last writes; PostgreSQL lacks nothing.
describeWithPrivateRedis('the standard load while Redis fails over', () => {
  let system: StandardSystem;
  const start = async (url: string): Promise<void> => {
    system = await startStandardSystem({ queueUrl: url, env: { LEASE_MS: '2000' } });
  };
  const queueKey = (): string => `{${system.env['QUEUE_NAME']!}}`;

  const claimsSince = async (at: number): Promise<number> => {
    const { rows } = await system.database.pool.query<{ claims: number }>(
      `select count(*)::integer as claims from events where type = 'run.claimed' and occurred_at > $1`,
      [new Date(at).toISOString()],
    );
    return rows[0]!.claims;
  };

  /** Waits until a Run is claimed after `at`. Returns the milliseconds from `at` until then. */
  async function goesOnAfter(at: number): Promise<number> {
    const isClaimed = async (): Promise<boolean> => (await claimsSince(at)) > 0;
    await eventually(isClaimed, { what: 'a Run is claimed', timeoutMs: 2 * GOES_ON_MS });
    return Date.now() - at;
  }

  /** Runs `body` under load. Checks afterwards that nothing is lost or stuck, and that streams are complete. */
  async function underLoad(title: string, body: () => Promise<void>): Promise<void> {
    let isOver = false;
    const load = system.startLoad(seededRandom(freshSeed(), title), { ...LOAD, keepOn: () => !isOver });
    await eventually(() => load.ended > 5, { what: 'the load is under way', timeoutMs: 30_000 });
    await body().finally(() => (isOver = true));
    await load.finished(60_000);
    await load.holds();
  }

  /** Stops replication, and then kills the queue's master, so that the replicas lack the last jobs. */
  async function losesMaster(title: string, servers: { cut(): Promise<RedisServer>; current(): Promise<RedisServer> }) {
    await underLoad(title, async () => {
      const master = await servers.cut();
      const cutAt = Date.now();
      await eventually(async () => (await claimsSince(cutAt)) > 0, { what: 'a job that no replica has is claimed' });
      await master.kill();
      const killedAt = Date.now();
      const isOther = async (): Promise<boolean> => (await servers.current()) !== master;
      await eventually(isOther, { what: 'a replica takes over', timeoutMs: 30_000 });
      const takenMs = Date.now() - killedAt;
      const tookMs = takenMs + (await goesOnAfter(Date.now()));
      reportFigure(`${title}: a replica took over after ${takenMs} ms, Runs continued after ${tookMs} ms`);
      reportLatency(GOES_ON_MS, tookMs, 'Runs continued after');
    });
  }

  describe('on Sentinels', () => {
    let sentinels: RedisSentinels;
    beforeAll(async () => {
      sentinels = await startRedisSentinels();
      await start(sentinels.url);
    }, 120_000);
    afterAll(async () => {
      await system?.stop();
      await sentinels.stop();
    });

    test(
      'loses nothing when the master is killed: streams and Runs continue (I1 I8 I9)',
      () =>
        losesMaster('Sentinel fail-over', {
          current: () => sentinels.master(),
          cut: async () => {
            const master = await sentinels.master();
            await sentinels.cutReplication();
            return master;
          },
        }),
      upTo(120_000),
    );
  });

  describe('on a cluster', () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await startRedisCluster();
      await start(cluster.url);
    }, 120_000);
    afterAll(async () => {
      await system?.stop();
      await cluster.stop();
    });

    test(
      'loses nothing while the slot of the queue moves between masters: streams and Runs continue (I1 I8 I9)',
      () =>
        underLoad('slot migration', async () => {
          const visited = new Set<RedisServer>();
          for (const to of cluster.nodes.slice(0, 3)) {
            if ((await cluster.masterOf(queueKey())) !== to) await cluster.migrateSlotOf(queueKey(), to);
            visited.add(await cluster.masterOf(queueKey()));
            reportLatency(GOES_ON_MS, await goesOnAfter(Date.now()), 'Runs continued after');
          }
          expect(visited.size).toBe(3);
        }),
      upTo(120_000),
    );

    test(
      'loses nothing when the master of the queue is killed: streams and Runs continue (I1 I8 I9)',
      () =>
        losesMaster('cluster fail-over', {
          current: () => cluster.masterOf(queueKey()),
          cut: async () => {
            const master = await cluster.masterOf(queueKey());
            await cluster.cutReplication(master);
            return master;
          },
        }),
      upTo(120_000),
    );
  });
});
