import { describeWithRedis, eventually, redisUrl, reportFigure, reportLatency, type SpawnedNode } from '#testing';
import { allRunsCompleted, expectHealthy } from '../support/checks.ts';
import { createAcknowledged, inParallel, type Caller } from '../support/client.ts';
import type { Hold } from '../support/holds.ts';
import { FakeProvider, scriptText, type ModelCall, type ToolUse } from '../support/fake-provider.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { toldTimes } from '../support/times.ts';

const RUNS = 100;
/** Half of them are in a step that ends when the worker has been told to stop, the others in one that would go on for ever. */
const ENDING = RUNS / 2;
const WARM = 20;
const WARMING = scriptText('warming', { pieces: 2, pauseMs: 0, tools: ['lookup'] });
const GRACE_MS = isLong ? 5_000 : 1_500;
const NEXT_EVENT_MS = 1_000;

describeWithRedis(`a worker that executes ${RUNS} Runs is told to stop (F16)`, () => {
  let fakeProvider: FakeProvider;
  let system: System;
  let caller: Caller;
  let holds: Hold<ModelCall | ToolUse>[];
  let first: SpawnedNode;

  async function whileStarted(body: () => Promise<void>): Promise<void> {
    fakeProvider = await FakeProvider.start();
    const env = { ...fakeProvider.env, WORKER_SLOTS: String(RUNS), SHUTDOWN_GRACE_MS: String(GRACE_MS) };
    system = await startSystem({ queueUrl: redisUrl().url, env, manifest: fakeProvider.manifest });
    try {
      [{ caller }, first] = await Promise.all([system.startApi(), system.startWorker()]);
      await body();
    } finally {
      await system.stop();
      await fakeProvider.close();
    }
  }

  const messageOf = (i: number): string => scriptText(`${i}`, { pieces: 4, pauseMs: 0, tools: ['lookup'] });

  /** All of them in their first step, at the provider. */
  async function startRuns(): Promise<void> {
    holds = Array.from({ length: RUNS }, (_, i) =>
      fakeProvider.hold('all said', (call) => 'message' in call && call.message === messageOf(i)),
    );
    await inParallel(RUNS, 8, (i) => createAcknowledged(caller, messageOf(i)));
    await Promise.all(holds.map(({ reached }) => reached));
  }

  test(
    'each Run is claimed by another worker after its step or the grace period',
    () => whileStarted(handsOver),
    upTo(60_000),
  );

  async function handsOver(): Promise<void> {
    await startRuns();
    await system.startWorker();
    // Others are at work when one stops: it has its connections, and has run what it runs once before.
    await inParallel(WARM, 4, () => createAcknowledged(caller, WARMING));
    await eventually(
      () => fakeProvider.modelCalls.filter(({ message, step }) => message === WARMING && step === 1).length === WARM,
      {
        what: 'the other worker works',
      },
    );
    const toldAt = Date.now();
    const stopped = first.kill('SIGTERM');
    await first.waitForLine(/worker stopping/);
    const endedAt = Date.now();
    for (const hold of holds.slice(0, ENDING)) hold.release();
    expect(await stopped).toEqual({ code: 0, signal: null });
    const stoppedMs = Date.now() - toldAt;
    await allRunsCompleted(system.database, RUNS + WARM, upTo(30_000));

    const handOvers = await readHandOvers();
    const [soon, late] = [handOvers.slice(0, ENDING), handOvers.slice(ENDING)];
    const untilNext = handOvers.map(({ handedOverAt, claimedAt }) => claimedAt - handedOverAt);
    const untilCalled = handOvers.map(({ handedOverAt, calledAt }) => calledAt - handedOverAt);
    reportFigure(
      `F16: after its step had ended handed over after ${toldTimes(soon.map((run) => run.handedOverAt - endedAt))}, ` +
        `cut off after ${toldTimes(late.map((run) => run.handedOverAt - toldAt))}; claimed by the next worker after ` +
        `${toldTimes(untilNext)}, its first call outside after ${toldTimes(untilCalled)}; stopped after ${stoppedMs} ms`,
    );
    expect(handOvers.map(({ reason, losses }) => ({ reason, losses }))).toEqual(
      Array(RUNS).fill({ reason: 'handed_over', losses: 0 }),
    );
    for (const { handedOverAt } of late) expect(handedOverAt - toldAt).toBeGreaterThanOrEqual(GRACE_MS);
    await expectHealthy(system.database);
    const untilHandedOver = soon.map((run) => run.handedOverAt - endedAt);
    reportLatency(GRACE_MS / 2, untilHandedOver, 'handed over after');
    reportLatency(NEXT_EVENT_MS, untilNext, 'claimed by the next worker after', isLong ? 1 : 0.99);
    reportLatency(GRACE_MS + 2_000, stoppedMs, 'stopped after');
  }

  /** In the order of the messages. */
  async function readHandOvers() {
    type Row = {
      message: string;
      runId: string;
      reason: string;
      losses: number;
      handedOverAt: number;
      claimedAt: number;
    };
    const { rows } = await system.database.pool.query<Row>(
      `select said.data->>'text' as message, run_id as "runId", given.data->>'reason' as reason,
              (given.data->>'losses')::integer as losses,
              extract(epoch from given.occurred_at)::float8 * 1000 as "handedOverAt",
              extract(epoch from taken.occurred_at)::float8 * 1000 as "claimedAt"
       from events said
       join events given using (run_id)
       join events taken using (run_id)
       where said.type = 'message.added' and given.type = 'run.requeued' and taken.type = 'run.claimed' and taken.attempt = 2`,
    );
    const byMessage = new Map(rows.map((row) => [row.message, row]));
    return Array.from({ length: RUNS }, (_, i) => {
      const row = byMessage.get(messageOf(i))!;
      const calls = [...fakeProvider.modelCalls, ...fakeProvider.toolUses].filter(
        ({ runId, pid }) => runId === row.runId && pid !== first.pid,
      );
      return { ...row, calledAt: Math.min(...calls.map(({ openedAt }) => openedAt)) };
    });
  }
});
