import { Redis } from 'ioredis';
import { publishAgentVersion, type AgentManifestInput } from '#agents';
import { describeWithRedis, eventually, redisUrl, reportFigure, type SpawnedNode } from '#testing';
import { expectHealthy } from './support/checks.ts';
import {
  getThread,
  inParallel,
  postEvents,
  readLog,
  type Answer,
  type Caller,
  type LogEntry,
} from './support/client.ts';
import { newThread, say } from './support/hanging-runs.ts';
import { addAgent } from './support/more-agents.ts';
import { FakeProvider, scriptText, type ToolName } from './support/fake-provider.ts';
import { KB, ProcessGauge, type Sample } from './support/process-gauge.ts';
import { freshSeed, seededRandom, type Random } from './support/random.ts';
import { isLong, startSystem, upTo, type System } from './support/system.ts';

const WAITING = isLong ? 1_000 : 200;
const CONNECTIONS = isLong ? 32 : 8;
/** Of live memory, by which a process may grow: what it would keep of each Run would be several KB, its Thread's state alone. */
const KEPT_PER_RUN = 1 * KB;
/** More or fewer connections, which others open and close, are of this order. */
const MEASURED_WITHIN = 512 * KB;
/** Runs with so many questions each, decided one by one while everything around them changes. */
const ASKING = isLong ? 30 : 6;
const QUESTIONS = 3;
const WAIT_MS = 6_000;

const asks = (name: string, questions = 1): string =>
  scriptText(name, { pieces: 4, pauseMs: 0, tools: Array<ToolName>(questions).fill('note') });

type Decision = 'allow_once' | 'reject_once';

describeWithRedis('Runs that wait for a person', () => {
  let fakeProvider: FakeProvider;
  let system: System;
  let apis: { process: SpawnedNode; caller: Caller }[];
  let workers: SpawnedNode[];
  let random: Random;

  beforeAll(async () => {
    random = seededRandom(freshSeed(), 'waiting');
    fakeProvider = await FakeProvider.start();
    const NODE_OPTIONS = `${fakeProvider.env.NODE_OPTIONS} ${ProcessGauge.env.NODE_OPTIONS}`;
    const env = { ...ProcessGauge.env, NODE_OPTIONS, LEASE_MS: '2000' };
    system = await startSystem({ queueUrl: redisUrl().url, env, manifest: fakeProvider.manifest });
    await startAll();
  }, 120_000);

  afterAll(async () => {
    await system.stop();
    await fakeProvider.close();
  });

  async function startAll(): Promise<void> {
    const two = [0, 1];
    [apis, workers] = await Promise.all([
      Promise.all(two.map(() => system.startApi())),
      Promise.all(two.map(() => system.startWorker())),
    ]);
  }

  /** Each api and each worker once in good order and once not. */
  async function endAll(): Promise<void> {
    const all = [...apis.map(({ process }) => process), ...workers];
    await Promise.all(all.map((process, i) => process.kill(i % 2 === 0 ? 'SIGTERM' : 'SIGKILL')));
  }

  const callerOf = (i: number): Caller => apis[i % apis.length]!.caller;

  interface WaitingRun {
    threadId: string;
    runId: string;
  }

  /** Starts the Runs; resolves when all of them wait. */
  async function startWaiting(count: number, text: string, caller = callerOf): Promise<WaitingRun[]> {
    const runs = await inParallel(count, CONNECTIONS, async (i) => {
      const threadId = await newThread(caller(i));
      return { threadId, runId: (await say(caller(i), threadId, text)).id };
    });
    await eventually(async () => (await countRuns(runs, 'waiting_input')) === count, {
      what: 'all wait',
      timeoutMs: upTo(30_000),
    });
    return runs;
  }

  async function countRuns(runs: readonly WaitingRun[], status: string): Promise<number> {
    const { rows } = await system.database.pool.query<{ runs: number }>(
      'select count(*)::integer as runs from run_summaries where run_id = any ($1) and status = $2',
      [runs.map(({ runId }) => runId), status],
    );
    return rows[0]!.runs;
  }

  async function questionsOf({ threadId }: WaitingRun, i = 0): Promise<LogEntry[]> {
    return (await readLog(callerOf(i), threadId)).filter(({ type }) => type === 'tool.confirmation.required');
  }

  const decide = (caller: Caller, { threadId }: WaitingRun, question: LogEntry, decision: Decision): Promise<Answer> =>
    postEvents(caller, threadId, { type: 'permission_decision', requestId: question.content, decision });

  /** What the log says of a tool call after it was asked about, and what the tool server knows of it. */
  function expectDecided(log: readonly LogEntry[], { toolCallId = '' }: LogEntry, decision: Decision): void {
    const of = log.filter((entry) => entry.toolCallId === toolCallId && entry.type !== 'tool.confirmation.required');
    const told = decision === 'allow_once' ? ['tool.use.started', 'tool.use.completed'] : ['tool.use.completed'];
    expect([...of.map(({ type }) => type), fakeProvider.effectsOf(toolCallId)]).toEqual([...told, told.length - 1]);
  }

  test(
    `${WAITING} of them hold nothing but rows, and all decided at once they complete, each once`,
    async () => {
      const gauges = [...apis.map(({ process }) => process), ...workers].map((process) => new ProcessGauge(process));
      const measure = (): Promise<Sample[]> => Promise.all(gauges.map((gauge) => gauge.measure()));
      // The first half warms the processes up: what they have compiled and remember is not of these Runs.
      const runs = await startWaiting(WAITING / 2, asks('waits'));
      const before = await measure();
      runs.push(...(await startWaiting(WAITING / 2, asks('waits too'))));
      await expectOnlyRows(runs);
      let after = await measure();
      const grown = (): number[] => after.map(({ live }, i) => live - before[i]!.live);
      const areSmall = async (): Promise<boolean> => {
        if (grown().every((bytes) => bytes < (WAITING / 2) * KEPT_PER_RUN + MEASURED_WITHIN)) return true;
        after = await measure();
        return false;
      };
      // What is under way when one looks goes a moment later; what a Run would hold stays.
      await eventually(areSmall, { what: 'no process has grown by what Runs would hold', timeoutMs: 15_000 });
      const timers = after.map((sample, i) => sample.timers - before[i]!.timers);
      const startedAt = performance.now();
      await decideAll(runs);
      const ms = Math.round(performance.now() - startedAt);
      const told = grown()
        .map((bytes) => Math.round(bytes / KB))
        .join(', ');
      reportFigure(
        `${WAITING} waiting Runs: with the second half of them live memory of 2 apis and 2 workers grew by ${told} KB, timers by ` +
          `${timers.join(', ')}; decided at once, all had ended after ${ms} ms`,
      );
      for (const count of timers) expect(count).toBeLessThan(10);
    },
    upTo(120_000),
  );

  /** No job in the queue, no lease, no holder. */
  async function expectOnlyRows(runs: readonly WaitingRun[]): Promise<void> {
    const { rows } = await system.database.pool.query(
      `select state, holder, count(*)::integer as runs from run_work where run_id = any ($1) group by state, holder`,
      [runs.map(({ runId }) => runId)],
    );
    expect(rows).toEqual([{ state: 'waiting', holder: null, runs: runs.length }]);
    const redis = new Redis(redisUrl().url);
    try {
      // A job goes once its worker is back from the append that has the Run wait.
      const areGone = async (): Promise<boolean> => {
        const keys = await redis.keys(`{${system.env['QUEUE_NAME']}}*`);
        expect(keys.length).toBeGreaterThan(0);
        return !keys.some((key) => runs.some(({ runId }) => key.includes(runId)));
      };
      await eventually(areGone, { what: 'there is no job of them' });
    } finally {
      redis.disconnect();
    }
  }

  /** From several connections, over both apis, a quarter refused. Resolves when all has ended as it should. */
  async function decideAll(runs: readonly WaitingRun[]): Promise<void> {
    const questions = await inParallel(runs.length, CONNECTIONS, async (i) => (await questionsOf(runs[i]!, i))[0]!);
    const decisionOf = (i: number): Decision => (i % 4 === 3 ? 'reject_once' : 'allow_once');
    const answers = await inParallel(runs.length, CONNECTIONS, (i) =>
      decide(callerOf(i + 1), runs[i]!, questions[i]!, decisionOf(i)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(runs.length).fill(200));
    await eventually(async () => (await countRuns(runs, 'completed')) === runs.length, {
      what: 'all are completed',
      timeoutMs: upTo(60_000),
    });
    await inParallel(runs.length, CONNECTIONS, async (i) => {
      const log = await readLog(callerOf(i), runs[i]!.threadId);
      expect(log.filter(({ type }) => type === 'run.completed')).toHaveLength(1);
      expectDecided(log, questions[i]!, decisionOf(i));
    });
    await expectHealthy(system.database);
  }

  test(
    'several questions of a Run are decided in any order, over a restart of everything and a new version of the agent',
    async () => {
      const patient = { ...fakeProvider.manifest, name: 'patient' } as AgentManifestInput;
      const impatient = { ...patient, name: 'impatient', limits: { ...fakeProvider.manifest.limits, waitMs: WAIT_MS } };
      const [patientId, impatientId] = [await addAgent(system, patient), await addAgent(system, impatient)];
      const of = (agentId: string) => (i: number) => ({ ...callerOf(i), agentId });
      const runs = await startWaiting(ASKING, asks('many', QUESTIONS), of(patientId));
      const questions = await inParallel(ASKING, CONNECTIONS, (i) => questionsOf(runs[i]!, i));
      const orders = questions.map((asked) => shuffled(asked));
      // One of each at least, in one step.
      const decisionOf = (i: number, n: number): Decision => ((i + n) % QUESTIONS === 0 ? 'reject_once' : 'allow_once');
      const decideNth = (n: number, from: number): Promise<void> =>
        inParallel(ASKING, CONNECTIONS, async (i) => {
          const [run, question] = [runs[i]!, orders[i]![n]!];
          expect((await decide(callerOf(i + from), run, question, decisionOf(i, n))).status).toBe(200);
          // Another request, the same or the opposite: what is decided is decided.
          const other = random.pick(['allow_once', 'reject_once'] as const);
          expect((await decide(callerOf(i + from + 1), run, question, other)).status).toBe(409);
        }).then(() => undefined);

      await decideNth(0, 0);
      await publishAgentVersion(system.database.pool, patientId, { ...patient, harness: { name: 'echo' } });
      const late = await startWaiting(ASKING, asks('late'), of(impatientId));
      const lateQuestions = await inParallel(ASKING, CONNECTIONS, async (i) => (await questionsOf(late[i]!, i))[0]!);
      await endAll();
      await startAll();
      for (let n = 1; n < QUESTIONS - 1; n++) await decideNth(n, n);
      expect(await countRuns(runs, 'waiting_input')).toBe(ASKING);
      await decideNth(QUESTIONS - 1, 1);

      await eventually(async () => (await countRuns(runs, 'completed')) === ASKING, {
        what: 'all are completed',
        timeoutMs: 20_000,
      });
      await inParallel(ASKING, CONNECTIONS, async (i) => {
        const log = await readLog(callerOf(i), runs[i]!.threadId);
        orders[i]!.forEach((question, n) => expectDecided(log, question, decisionOf(i, n)));
        const { text } = fakeProvider.modelCalls.find(({ runId, step }) => runId === runs[i]!.runId && step === 1)!;
        expect((await getThread(callerOf(i), runs[i]!.threadId)).body.run?.finalOutput?.text).toBe(text);
      });
      await expectExpired(late, lateQuestions);
      await expectHealthy(system.database);
    },
    upTo(120_000),
  );

  function shuffled(list: readonly LogEntry[]): LogEntry[] {
    const left = [...list];
    return list.map(() => left.splice(random.below(left.length), 1)[0]!);
  }

  /** Their time passed while nothing ran. */
  async function expectExpired(runs: readonly WaitingRun[], questions: readonly LogEntry[]): Promise<void> {
    await eventually(async () => (await countRuns(runs, 'expired')) === runs.length, {
      what: 'all are expired',
      timeoutMs: 20_000,
    });
    await inParallel(runs.length, CONNECTIONS, async (i) => {
      expect((await decide(callerOf(i), runs[i]!, questions[i]!, 'allow_once')).status).toBe(409);
      const { thread, run } = (await getThread(callerOf(i), runs[i]!.threadId)).body;
      expect([thread.status, run?.status]).toEqual(['IDLE', 'expired']);
      expect(fakeProvider.effectsOf(questions[i]!.toolCallId!)).toBe(0);
    });
  }
});
