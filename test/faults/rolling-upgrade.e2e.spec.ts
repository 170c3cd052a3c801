import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeWithRedis, eventually, redisUrl, type SpawnedNode } from '#testing';
import { Balancer } from '../support/balancer.ts';
import { getThread, inParallel, postEvents, readLog, type Caller, type LogEntry } from '../support/client.ts';
import { newThread, say } from '../support/hanging-runs.ts';
import { Outside, scriptText } from '../support/outside.ts';
import { buildRelease, hasCommit, preloadOf, previousRelease } from '../support/previous-release.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { StandardLoad } from '../support/standard-load.ts';
import { isLong, startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

const PAIRS = isLong ? 2 : 1;
const THREADS = isLong ? 10 : 5;
const WAITING = isLong ? 10 : 4;
/** How long both releases work side by side, under load. */
const TOGETHER_MS = isLong ? 10_000 : 2_500;
/** Long enough for the balancer to have probed, even if it is late. */
const DRAIN_MS = 1_500;

const previous = previousRelease();
const isThere = hasCommit(previous.commit);
const missing = `The previous release is not in this clone; run git fetch --depth=1 origin ${previous.commit}`;
const describeUpgrade = isThere ? describeWithRedis : describe.skip;

if (isThere) {
  test('previous-release.json names the version that its commit has', () => {
    const manifest = execFileSync('git', ['show', `${previous.commit}:package.json`], { encoding: 'utf8' });
    expect(JSON.parse(manifest)).toMatchObject({ version: previous.version });
  });
} else if (process.env['CI'] === 'true') {
  test('the clone contains the commit of the previous release', () => {
    throw new Error(missing);
  });
} else process.stderr.write(`SKIPPED: the rolling upgrade. ${missing}\n`);

interface Pair {
  api: ApiProcess;
  worker: SpawnedNode;
}

describeUpgrade('the previous release and this one', () => {
  let release: string;
  let outside: Outside;
  let system: System;
  let balancer: Balancer;
  let pairs: Pair[];
  let anyApi: Caller;

  beforeAll(async () => {
    release = buildRelease(previous);
    outside = await Outside.start();
    const env = { ...outside.env, SHUTDOWN_DRAIN_MS: String(DRAIN_MS) };
    // Migrated by this release, as an upgrade begins.
    system = await startSystem({ queueUrl: redisUrl().url, env, manifest: outside.manifest });
    balancer = await Balancer.start();
    pairs = await Promise.all(Array.from({ length: PAIRS }, startOld));
    anyApi = pairs[0]!.api.caller;
  }, 300_000);

  afterAll(async () => {
    await system.stop();
    await balancer.close();
    await outside.close();
  });

  async function startPair(...of: Parameters<System['startApi']>): Promise<Pair> {
    const [api, worker] = await Promise.all([system.startApi(...of), system.startWorker(...of)]);
    await balancer.add(api.caller);
    return { api, worker };
  }

  const startNew = (): Promise<Pair> => startPair();

  const startOld = (): Promise<Pair> => startPair(preloadOf(release), release);

  async function stop({ api, worker }: Pair): Promise<void> {
    const exits = await Promise.all([api.process.kill('SIGTERM'), worker.kill('SIGTERM')]);
    expect(exits).toEqual(Array(2).fill({ code: 0, signal: null }));
    balancer.remove(api.caller);
  }

  /** The first ones go as the others come. */
  async function replaceAll(start: () => Promise<Pair>): Promise<void> {
    const old = pairs.splice(0);
    for (const _ of old) pairs.push(await start());
    await sleep(TOGETHER_MS);
    for (const pair of old) await stop(pair);
  }

  const caller = (): Caller => balancer.through(anyApi);

  async function decide(threadId: string, n: number): Promise<void> {
    const questions = (): Promise<LogEntry[]> =>
      readLog(caller(), threadId).then((log) => log.filter(({ type }) => type === 'tool.confirmation.required'));
    const asked = await eventually(async () => ((await questions()).length === 2 ? questions() : null), {
      what: 'it asks',
      timeoutMs: 20_000,
    });
    const decision = { type: 'permission_decision', requestId: asked[n]!.content, decision: 'allow_once' };
    expect((await postEvents(caller(), threadId, decision)).status).toBe(200);
  }

  test(
    'work together, forth and back, under load: no request fails, and Runs that wait for a person complete',
    async () => {
      const random = seededRandom(freshSeed(), 'rolling upgrade');
      let isRolling = true;
      const load = new StandardLoad(
        { database: system.database, outside, callers: [caller], random },
        { threads: THREADS, pauseMs: 30, keepOn: () => isRolling },
      );
      const asks = scriptText('asks', { pieces: 4, pauseMs: 0, tools: ['note', 'note'] });
      const waiting = await inParallel(WAITING, 4, async () => {
        const threadId = await newThread(caller());
        return { threadId, runId: (await say(caller(), threadId, asks)).id };
      });
      for (const { threadId } of waiting) await decide(threadId, 0);
      await replaceAll(startNew);
      // Half of them over the upgrade, the others over the way back as well.
      for (const { threadId } of waiting.slice(0, WAITING / 2)) await decide(threadId, 1);
      await replaceAll(startOld);
      for (const { threadId } of waiting.slice(WAITING / 2)) await decide(threadId, 1);
      isRolling = false;
      await load.finished(upTo(60_000));

      const { requests } = load.client;
      process.stderr.write(`upgrade and back: ${requests.length} requests\n`);
      expect(requests.filter(({ outcome }) => outcome !== 'ok')).toEqual([]);
      expect(balancer.failures).toEqual([]);
      for (const { threadId } of waiting) {
        const isDone = async (): Promise<boolean> =>
          (await getThread(caller(), threadId)).body.run?.status === 'completed';
        await eventually(isDone, { what: 'it is completed', timeoutMs: 20_000 });
      }
      for (const { runId } of waiting) {
        const effects = outside.toolUses.filter((use) => use.runId === runId && use.tookEffect);
        expect(new Set(effects.map(({ toolCallId }) => toolCallId)).size).toBe(2);
        expect(effects).toHaveLength(2);
      }
      await load.holds();
    },
    upTo(120_000),
  );
});
