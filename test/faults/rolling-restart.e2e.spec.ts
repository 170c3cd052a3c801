import { describeWithRedis, redisUrl, reportFigure } from '#testing';
import { Balancer } from '../support/balancer.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { StandardLoad } from '../support/standard-load.ts';
import { startStandardSystem, type StandardSystem } from '../support/standard-system.ts';
import { isLong, upTo } from '../support/system.ts';

/** Of all pods and workers, one after the other; short, of one pod and one worker. */
const ROUNDS = isLong ? 5 : 1;
/** Until the balancer has certainly looked, also when it is late. */
const DRAIN_MS = 1_500;

describeWithRedis('two pods behind a balancer, and two workers, are restarted one after the other (F16)', () => {
  let system: StandardSystem;
  let balancer: Balancer;

  beforeAll(async () => {
    system = await startStandardSystem({ queueUrl: redisUrl().url, env: { SHUTDOWN_DRAIN_MS: String(DRAIN_MS) } });
    balancer = await Balancer.start();
    await Promise.all(system.apis.map(({ caller }) => balancer.add(caller)));
  }, 120_000);

  afterAll(async () => {
    await system.stop();
    await balancer.close();
  });

  /** The new ones first, as deployments do it. */
  async function replacePair(i: number): Promise<void> {
    const [oldApi, oldWorker] = [system.apis[i]!, system.workers[i]!];
    const [api, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    [system.apis[i], system.workers[i]] = [api, worker];
    await balancer.add(api.caller);
    const exits = await Promise.all([oldApi.process.kill('SIGTERM'), oldWorker.kill('SIGTERM')]);
    expect(exits).toEqual(Array(2).fill({ code: 0, signal: null }));
    balancer.remove(oldApi.caller);
  }

  test(
    'and no request fails under load',
    async () => {
      const { database, fakeProvider } = system;
      const random = seededRandom(freshSeed(), 'rolling restart');
      const callers = [() => balancer.through(system.apis[0]!.caller)];
      let isRestarting = true;
      const load = new StandardLoad(
        { database, fakeProvider, callers, random },
        { threads: isLong ? 50 : 12, messages: 2, keepOn: () => isRestarting },
      );
      for (let round = 0; round < ROUNDS; round++) for (const i of isLong ? [0, 1] : [0]) await replacePair(i);
      isRestarting = false;
      await load.finished(upTo(30_000));
      const { requests } = load.client;
      reportFigure(`F16: ${requests.length} requests over restarts of apis and workers`);
      expect(requests.filter(({ outcome }) => outcome !== 'ok')).toEqual([]);
      expect(balancer.failures).toEqual([]);
      await load.holds();
    },
    upTo(90_000),
  );
});
