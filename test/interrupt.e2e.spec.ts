import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentManifestInput } from '#agents';
import {
  describeWithPrivateRedis,
  eventually,
  type PrivateRedis,
  reportFigure,
  reportLatency,
  startPrivateRedis,
} from '#testing';
import { expectHealthy } from './support/checks.ts';
import { getThread, inParallel, postEvents, readLog, type Answer, type Caller, type Run } from './support/client.ts';
import { hangAt, newThread, PLACES, say, type HangingRun } from './support/hanging-runs.ts';
import { addAgent } from './support/more-agents.ts';
import { scriptText } from './support/fake-provider.ts';
import { freshSeed, seededRandom } from './support/random.ts';
import { startStandardSystem, type StandardSystem } from './support/standard-system.ts';
import { isLong, upTo } from './support/system.ts';
import { percentile, toldTimes } from './support/times.ts';

const INTERRUPTS = isLong ? 1_000 : 32;
const CONNECTIONS = 4;
/** Bounds from the interrupt request to the end of the provider's connection. */
const CLOSED_P50_MS = 100;
const CLOSED_P99_MS = 500;
/** Bound from the answer to the interrupt. The short form runs beside other specs, where answers themselves take longer. */
const CLOSED_AFTER_ANSWER_P50_MS = 50;
const CLOSED_WITHOUT_WAKES_MS = 2_000;
/** Threads whose messages come faster than their Runs end, and how many each. */
const BUSY_THREADS = isLong ? 100 : 6;
const MESSAGES = 6;
/** How long the next Run waits for a worker that does not acknowledge (docs/spec/decisions.md#when-busy). */
const ACKNOWLEDGE_MS = 2_000;

/** The end of one connection and the request on another are seen by one busy process, in any order. I4 is for `verify`. */
const SEEN_WITHIN_MS = 50;
/** By then every process knows of a pause. */
const PAUSE_KNOWN_MS = 300;

const SHORT = scriptText('short', { pieces: 2, pauseMs: 0, tools: [] });

describeWithPrivateRedis('an interrupt is a commit', () => {
  let redis: PrivateRedis;
  let system: StandardSystem;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    system = await startStandardSystem({ queueUrl: redis.url });
  }, 120_000);

  afterAll(async () => {
    await expectHealthy(system.database);
    await system.stop();
    await redis.stop();
  });

  const callerOf = (i: number): Caller => system.apis[i % system.apis.length]!.caller;

  /** Callers of another agent that lives outside. */
  async function agentWhere(more: Partial<AgentManifestInput> & { name: string }): Promise<(i: number) => Caller> {
    const manifest = { ...system.fakeProvider.manifest, ...more } as AgentManifestInput;
    const agentId = await addAgent(system, manifest);
    return (i) => ({ ...callerOf(i), agentId });
  }

  type Interrupted = Answer<{ events: { run: Run }[]; thread: { status: string } }>;

  /** The answer shows what it has done, and so does whoever is asked from then on. */
  async function interrupt(caller: Caller, threadId: string, runId: string, threadStatus = 'IDLE'): Promise<void> {
    const answer = (await postEvents(caller, threadId, { type: 'user_interrupt', runId })) as unknown as Interrupted;
    const { status, body } = answer;
    const shown = { status, run: body.events?.[0]?.run.status, thread: body.thread?.status };
    expect(shown).toEqual({ status: 200, run: 'cancelled', thread: threadStatus });
  }

  async function statusOf(runId: string): Promise<string | undefined> {
    const sql = 'select status from run_summaries where run_id = $1';
    return (await system.database.pool.query<{ status: string }>(sql, [runId])).rows[0]?.status;
  }

  const becomes = (runId: string, status: string): Promise<unknown> =>
    eventually(async () => (await statusOf(runId)) === status, { what: `the Run is ${status}`, timeoutMs: 20_000 });

  async function claimsOf(runId: string): Promise<number> {
    const sql = `select from events where run_id = $1 and type = 'run.claimed'`;
    return (await system.database.pool.query(sql, [runId])).rowCount ?? 0;
  }

  test(
    'of a Run that no worker has: it is never begun',
    async () => {
      const enqueue = await agentWhere({ name: 'enqueue once', whenBusy: 'enqueue' });
      const echo = await addAgent(system, { name: 'echo', harness: { name: 'echo' } });
      const { call: _, ...ahead } = await hangAt(system.fakeProvider, enqueue(0));
      const [behind, last] = [
        await say(callerOf(0), ahead.threadId, SHORT),
        await say(callerOf(1), ahead.threadId, SHORT),
      ];
      await interrupt(callerOf(1), ahead.threadId, behind.id, 'RUNNING');

      const waiting = await newThread(callerOf(0));
      const { id: waitingRun } = await say(
        callerOf(0),
        waiting,
        scriptText('asks', { pieces: 2, pauseMs: 0, tools: ['note'] }),
      );
      const failing = await newThread({ ...callerOf(0), agentId: echo });
      const { id: delayedRun } = await say(callerOf(0), failing, '/fail-retryable');
      await becomes(waitingRun, 'waiting_input');
      await interrupt(callerOf(1), waiting, waitingRun);
      const question = (await readLog(callerOf(0), waiting)).find(({ type }) => type === 'tool.confirmation.required')!;
      const decision = { type: 'permission_decision', requestId: question.content, decision: 'allow_once' };
      expect(await postEvents(callerOf(0), waiting, decision)).toMatchObject({ status: 409 });
      const isDelayed = async (): Promise<boolean> =>
        (await claimsOf(delayedRun)) > 0 && (await statusOf(delayedRun)) === 'queued';
      await eventually(isDelayed, { what: 'it is to be tried again', timeoutMs: 20_000 });
      await interrupt(callerOf(1), failing, delayedRun);
      const tries = await claimsOf(delayedRun);

      await system.database.pool.query(
        `insert into queue_controls values ($1, now()) on conflict (queue) do update set paused_at = now()`,
        [system.env['QUEUE_NAME']],
      );
      await sleep(PAUSE_KNOWN_MS);
      const idle = await newThread(callerOf(0));
      const { id: queuedRun } = await say(callerOf(0), idle, SHORT);
      await interrupt(callerOf(1), idle, queuedRun);
      await system.database.pool.query('update queue_controls set paused_at = null where queue = $1', [
        system.env['QUEUE_NAME'],
      ]);

      // The Run before it ends: the one that is left is next.
      await interrupt(callerOf(0), ahead.threadId, ahead.runId, 'RESCHEDULING');
      await becomes(last.id, 'completed');
      expect(await Promise.all([behind.id, queuedRun, waitingRun, delayedRun].map(claimsOf))).toEqual([0, 0, 1, tries]);
      expect((await getThread(callerOf(0), failing)).body.run?.status).toBe('cancelled');
    },
    upTo(60_000),
  );

  test(
    `of ${INTERRUPTS} Runs under load closes provider and tool calls`,
    async () => {
      const random = seededRandom(freshSeed(), 'interrupts');
      let isOver = false;
      const load = system.startLoad(random, { threads: isLong ? 20 : 5, messages: 1, keepOn: () => !isOver });
      const afterRequest: number[] = [];
      const afterAnswer: number[] = [];
      const answered: number[] = [];
      await inParallel(INTERRUPTS, CONNECTIONS, async (i) => {
        const { threadId, runId, call } = await hangAt(system.fakeProvider, callerOf(i), PLACES[i % PLACES.length]);
        const sentAt = Date.now();
        await interrupt(callerOf(i + 1), threadId, runId);
        const answeredAt = Date.now();
        await eventually(() => call.closedAt !== null, { what: 'its connection is closed' });
        answered.push(answeredAt - sentAt);
        afterRequest.push(call.closedAt! - sentAt);
        afterAnswer.push(Math.max(0, call.closedAt! - answeredAt));
      });
      isOver = true;
      await load.finished(upTo(30_000));
      reportFigure(
        `interrupts: closed after the request ${toldTimes(afterRequest)}, after the answer ${toldTimes(afterAnswer)}`,
      );
      await load.holds();
      reportLatency(CLOSED_P99_MS, afterRequest, 'closed, at p99, after', 0.99);
      const answerMs = isLong ? 0 : percentile(answered, 0.5);
      const p50Ms = Math.max(CLOSED_AFTER_ANSWER_P50_MS, answerMs);
      reportLatency(p50Ms, afterAnswer, 'closed, at p50 after the answer, after', 0.5);
      reportLatency(CLOSED_P50_MS, afterRequest, 'closed, at p50, after', 0.5);
    },
    upTo(90_000),
  );

  test(
    'of Runs that are just being taken: no call outside outlives it',
    async () => {
      const random = seededRandom(freshSeed(), 'interrupts of Runs that begin');
      const sent = await inParallel(INTERRUPTS, CONNECTIONS, async (i) => {
        const threadId = await newThread(callerOf(i));
        system.fakeProvider.hold('step asked', (call) => call.threadId === threadId);
        const { id: runId } = await say(callerOf(i), threadId, SHORT);
        // Also on a machine on which nothing is claimed that soon.
        if (i % 4 === 0) await eventually(async () => (await claimsOf(runId)) > 0, { what: 'it is claimed' });
        await sleep(random.below(40));
        const sentAt = Date.now();
        await interrupt(callerOf(i + 1), threadId, runId);
        return { runId, sentAt };
      });
      const sentAt = new Map(sent.map((one) => [one.runId, one.sentAt]));
      // A call that begins after it would be one that it did not stop.
      await sleep(CLOSED_P99_MS);
      const calls = system.fakeProvider.modelCalls.filter(({ runId }) => sentAt.has(runId));
      const areClosed = (): boolean => calls.every(({ closedAt }) => closedAt !== null);
      await eventually(areClosed, { what: 'all their calls are closed' });
      const closedAfter = calls.map(({ runId, closedAt }) => closedAt! - sentAt.get(runId)!);
      const claims = await Promise.all(sent.map(({ runId }) => claimsOf(runId)));
      const claimed = claims.filter((count) => count > 0).length;
      reportFigure(
        `interrupts of Runs that begin: ${claimed} of ${INTERRUPTS} were claimed, the last of ${calls.length} calls was ` +
          `closed ${Math.max(...closedAfter)} ms after the request`,
      );
      expect(claimed).toBeGreaterThan(INTERRUPTS / 10);
      reportLatency(CLOSED_P99_MS, Math.max(0, ...closedAfter), 'the last call was closed after');
    },
    upTo(60_000),
  );

  /** Every Run of the Threads at work, from its first call outside to its last. */
  function workOf(threadId: string): { runId: string; from: number; to: number }[] {
    const calls = [...system.fakeProvider.modelCalls, ...system.fakeProvider.toolUses].filter(
      (call) => call.threadId === threadId,
    );
    return [...new Set(calls.map(({ runId }) => runId))].map((runId) => {
      const own = calls.filter((call) => call.runId === runId);
      return {
        runId,
        from: Math.min(...own.map(({ openedAt }) => openedAt)),
        to: Math.max(...own.map(({ closedAt }) => closedAt ?? Infinity)),
      };
    });
  }

  test(
    'by a message: the next Run begins when the worker has let go of the one before, and never sooner',
    async () => {
      const random = seededRandom(freshSeed(), 'interrupts by messages');
      const busy = await agentWhere({ name: 'interrupted', whenBusy: 'interrupt' });
      const overlaps: unknown[] = [];
      const waits: number[] = [];
      await inParallel(BUSY_THREADS, CONNECTIONS, async (t) => {
        const threadId = await newThread(busy(t));
        const saidAt = new Map<string, number>();
        for (let m = 0; m < MESSAGES; m++) {
          const isLast = m === MESSAGES - 1;
          const pieces = isLast ? 2 : 10_000;
          const text = scriptText(`${t}.${m}`, { pieces, pauseMs: isLast ? 0 : 20, tools: random.pick([[], ['act']]) });
          saidAt.set((await say(busy(random.below(2)), threadId, text)).id, Date.now());
          if (!isLast) await sleep(random.below(300));
        }
        await becomes([...saidAt.keys()].at(-1)!, 'completed');
        const work = workOf(threadId).toSorted((a, b) => a.from - b.from);
        for (const [i, { runId, from }] of work.entries()) {
          const before = work[i - 1];
          if (before !== undefined && before.to > from + SEEN_WITHIN_MS)
            overlaps.push({ threadId, before, runId, from });
          if (before !== undefined) waits.push(from - saidAt.get(runId)!);
        }
      });
      reportFigure(`interrupts by messages: the next call came after ${toldTimes(waits)}`);
      expect(overlaps).toEqual([]);
      expect(waits.length).toBeGreaterThan(BUSY_THREADS);
      await expectHealthy(system.database);
      reportLatency(ACKNOWLEDGE_MS / 2, waits, 'the next call, at p50, came after', 0.5);
      reportLatency(2 * ACKNOWLEDGE_MS, waits, 'the next call came after');
    },
    upTo(60_000),
  );

  test(
    'by a message, when the worker does not acknowledge: the next Run begins 2 s later, and the old one writes nothing',
    async () => {
      const busy = await agentWhere({ name: 'interrupted while stopped', whenBusy: 'interrupt' });
      // Not who leads the dispatcher: without a word it leads for six seconds more.
      const led = system.workers.findIndex((worker) => worker.output().includes('dispatcher became leader'));
      const isLed = ({ call: { pid } }: HangingRun): boolean => pid === system.workers[led]?.pid;
      let run = await hangAt(system.fakeProvider, busy(0), PLACES[1]);
      while (isLed(run)) run = await hangAt(system.fakeProvider, busy(0), PLACES[1]);
      const { threadId, runId, call } = run;
      const stopped = system.workers.find(({ pid }) => pid === call.pid)!;
      stopped.signal('SIGSTOP');
      let cameAfterMs: number;
      try {
        const saidAt = Date.now();
        const { id: next } = await say(busy(1), threadId, SHORT);
        expect(await statusOf(runId)).toBe('cancelled');
        await becomes(next, 'completed');
        const began = workOf(threadId).find((work) => work.runId === next)!;
        cameAfterMs = began.from - saidAt;
        reportFigure(`interrupted, with a worker that is stopped: the next call came after ${cameAfterMs} ms`);
        expect(cameAfterMs).toBeGreaterThanOrEqual(ACKNOWLEDGE_MS);
      } finally {
        stopped.signal('SIGCONT');
      }
      await eventually(() => call.closedAt !== null, { what: 'it lets go once it goes on', timeoutMs: 20_000 });
      reportLatency(2 * ACKNOWLEDGE_MS, cameAfterMs, 'the next call came after');
    },
    upTo(30_000),
  );

  test(
    'or else messages wait in line: first in, first out, and the end of a Run begins the next',
    async () => {
      const line = await agentWhere({ name: 'enqueue', whenBusy: 'enqueue' });
      const saidIn = await inParallel(BUSY_THREADS, CONNECTIONS, async (t) => {
        const threadId = await newThread(line(t));
        const runIds: string[] = [];
        const text = scriptText('in line', { pieces: 4, pauseMs: 5, tools: ['lookup'] });
        for (let m = 0; m < MESSAGES; m++) runIds.push((await say(line(t + m), threadId, text)).id);
        return { threadId, runIds };
      });
      await Promise.all(saidIn.map(({ runIds }) => becomes(runIds.at(-1)!, 'completed')));
      for (const { threadId, runIds } of saidIn) {
        const work = workOf(threadId).toSorted((a, b) => a.from - b.from);
        expect(work.map(({ runId }) => runId)).toEqual(runIds);
        expect(work.filter(({ from }, i) => i > 0 && work[i - 1]!.to > from)).toEqual([]);
      }
      const { rows } = await system.database.pool.query<{ ms: number }>(
        `select extract(epoch from claimed.occurred_at - ended.occurred_at)::float8 * 1000 as ms
         from events claimed
         join lateral (select max(occurred_at) as occurred_at from events
                       where thread_id = claimed.thread_id and version < claimed.version and type = 'run.completed') ended on true
         where claimed.type = 'run.claimed' and claimed.thread_id = any ($1) and ended.occurred_at is not null`,
        [saidIn.map(({ threadId }) => threadId)],
      );
      const gaps = rows.map(({ ms }) => ms);
      reportFigure(`in line: claimed after the end of the one before ${toldTimes(gaps)}`);
      expect(gaps).toHaveLength(BUSY_THREADS * (MESSAGES - 1));
      reportLatency(250, gaps, 'claimed, at p50, after', 0.5);
    },
    upTo(60_000),
  );

  test(
    'while Redis is away',
    async () => {
      const runs = await inParallel(10, CONNECTIONS, (i) =>
        hangAt(system.fakeProvider, callerOf(i), PLACES[i % PLACES.length]),
      );
      await redis.kill();
      const closedAfter = await inParallel(runs.length, CONNECTIONS, async (i) => {
        const { threadId, runId, call } = runs[i]!;
        const sentAt = Date.now();
        await interrupt(callerOf(i), threadId, runId);
        await eventually(() => call.closedAt !== null, { what: 'its connection is closed', timeoutMs: 15_000 });
        return call.closedAt! - sentAt;
      });
      await redis.start();
      reportFigure(`interrupts without Redis: closed after ${toldTimes(closedAfter)}`);
      const threadId = await newThread(callerOf(0));
      await becomes((await say(callerOf(0), threadId, SHORT)).id, 'completed');
      reportLatency(CLOSED_WITHOUT_WAKES_MS, closedAfter, 'closed after');
    },
    upTo(60_000),
  );
});
