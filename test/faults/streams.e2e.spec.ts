import { describeWithPrivateRedis, describeWithRedis, redisUrl, startPrivateRedis, type PrivateRedis } from '#testing';
import { AppendedRun } from '../support/appended-run.ts';
import { expectHealthy, expectWholeLog } from '../support/checks.ts';
import {
  createAcknowledged,
  entriesOf,
  getThread,
  postEvents,
  readLog,
  readStream,
  type Acknowledged,
  type Caller,
  type Frame,
  type LogEntry,
} from '../support/client.ts';
import { isLong, startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

/** Both API processes are ended and started again after each of these frames, and the emptied Redis too. */
const RESTART_AFTER = isLong ? [2, 8, 14, 20, 26] : [14];
const FLUSH_AFTER = isLong ? [1, 4, 8, 10, 12, 16, 20, 24, 28] : [4, 10, 20];
/** Pieces of text of a Run that is cut after each. */
const PIECES = isLong ? 50 : 25;
const NEWER = isLong ? 10_000 : 2_000;
const APPENDED_AT_ONCE = 500;
const LIVE = isLong ? 1_000 : 200;
const SETTINGS = { STREAMS_PER_TOKEN: '100000', RATE_LIMIT_PER_MINUTE: '1000000000' };

/** Thinking, a tool, one that a person is asked about, and pieces of text, all of it slow enough to be read live. */
const RUN = `/think 100ms /tool /confirm /pause 30 /pieces ${PIECES} to be cut`;

const streamOf = (threadId: string, query = ''): string => `/threads/${threadId}/events/stream?until=idle${query}`;

/** Two API processes that readers go to and fro between, and a worker. */
class Pods {
  private apis: ApiProcess[] = [];

  constructor(private readonly system: System) {}

  async start(): Promise<void> {
    await Promise.all([this.startApis(), this.system.startWorker()]);
  }

  async startApis(): Promise<void> {
    this.apis = await Promise.all([this.system.startApi(), this.system.startApi()]);
  }

  /** One is asked to go, one is killed; what comes then is other processes on other ports. */
  async restart(): Promise<void> {
    const [one, two] = this.apis;
    await Promise.all([one!.process.kill('SIGTERM'), two!.process.kill('SIGKILL')]);
    await this.startApis();
  }

  caller(i: number): Caller {
    return this.apis[i % this.apis.length]!.caller;
  }
}

/**
 * Follows a Thread until it is idle, cut off after every frame, and each time back at the other API process by the last id.
 * Answers the person's question on the way. `between` happens between two visits.
 */
async function followCut(
  pods: Pods,
  threadId: string,
  between: (frames: number) => Promise<void> = () => Promise.resolve(),
): Promise<LogEntry[]> {
  const frames: Frame[] = [];
  for (let visit = 0; ; visit++) {
    const seen = await readStream(pods.caller(visit), streamOf(threadId), {
      lastEventId: frames.at(-1)?.id,
      stop: () => true,
    });
    const frame = seen.at(-1);
    // The process that it was on has ended.
    if (frame === undefined) continue;
    if (frame.event === 'thread.idle') break;
    frames.push(frame);
    const [entry] = entriesOf([frame]);
    if (entry?.type === 'tool.confirmation.required') await allow(pods.caller(visit + 1), threadId, entry);
    await between(frames.length);
  }
  const entries = entriesOf(frames);
  expect(frames.map(({ id }) => id)).toEqual(entries.map(({ id }) => id));
  return entries;
}

async function allow(caller: Caller, threadId: string, { content: requestId }: LogEntry): Promise<void> {
  const decision = { type: 'permission_decision', requestId, decision: 'allow_once' };
  expect(await postEvents(caller, threadId, decision)).toMatchObject({ status: 200 });
}

/** I8, of a log that has everything in it that there is to cut. */
async function expectSeen(pods: Pods, { threadId, runId }: Acknowledged, seen: LogEntry[]): Promise<void> {
  const log = await readLog(pods.caller(0), threadId);
  expect(seen).toEqual(log);
  const { body } = await getThread(pods.caller(1), threadId);
  expectWholeLog(log, runId, body.run!.finalOutput!.text);
  const types = new Set(log.map(({ type }) => type));
  for (const type of ['agent.thinking.delta', 'tool.use.started', 'tool.confirmation.required', 'agent.message.delta'])
    expect(types).toContain(type);
  expect(log.length).toBeGreaterThan(30);
}

const backends = [
  { backend: 'PostgreSQL', describeIt: describe, queueUrl: () => undefined, plain: true, restarts: isLong },
  { backend: 'Redis', describeIt: describeWithRedis, queueUrl: () => redisUrl().url, plain: isLong, restarts: true },
];

for (const { backend, describeIt, queueUrl, plain: isPlain, restarts: hasRestarts } of backends) {
  describeIt(`a stream that is cut, jobs on ${backend}`, () => {
    let system: System;
    let pods: Pods;

    beforeAll(async () => {
      const url = queueUrl();
      system = await startSystem({ env: SETTINGS, ...(url === undefined ? {} : { queueUrl: url }) });
      pods = new Pods(system);
      await pods.start();
    }, 120_000);

    afterAll(async () => {
      await expectHealthy(system.database);
      await system.stop();
    });

    // In the gate each backend has one of the two tests: both cut the stream after every frame.
    if (isPlain)
      test(
        'after every frame, and resumed on the other process each time, shows the log',
        async () => {
          const thread = await createAcknowledged(pods.caller(0), RUN);
          await expectSeen(pods, thread, await followCut(pods, thread.threadId));
        },
        upTo(60_000),
      );

    if (hasRestarts)
      test(
        `after every frame, with both processes started anew in the middle of the Run, shows the log`,
        async () => {
          const thread = await createAcknowledged(pods.caller(0), RUN.replace('/pause 30', '/pause 100'));
          let restarts = 0;
          const restart = async (frames: number): Promise<void> => {
            if (!RESTART_AFTER.includes(frames)) return;
            await pods.restart();
            restarts++;
          };
          await expectSeen(pods, thread, await followCut(pods, thread.threadId, restart));
          expect(restarts).toBe(RESTART_AFTER.length);
        },
        upTo(60_000),
      );
  });
}

describeWithPrivateRedis('a stream that is cut, and Redis is emptied', () => {
  let redis: PrivateRedis;
  let system: System;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    system = await startSystem({ queueUrl: redis.url, env: SETTINGS });
  }, 120_000);

  afterAll(async () => {
    await expectHealthy(system.database);
    await system.stop();
    await redis.stop();
  });

  test(
    'between frames: it shows the log',
    async () => {
      const pods = new Pods(system);
      await pods.start();
      const thread = await createAcknowledged(pods.caller(0), RUN);
      let flushes = 0;
      const flush = async (frames: number): Promise<void> => {
        if (!FLUSH_AFTER.includes(frames)) return;
        await redis.flushAll();
        flushes++;
      };
      await expectSeen(pods, thread, await followCut(pods, thread.threadId, flush));
      expect(flushes).toBe(FLUSH_AFTER.length);
    },
    upTo(60_000),
  );
});

describe(`a stream that is resumed with ${NEWER} newer entries`, () => {
  let system: System;
  let pods: Pods;
  let run: AppendedRun;
  let early: LogEntry[];

  beforeAll(async () => {
    system = await startSystem({ env: SETTINGS });
    pods = new Pods(system);
    await pods.startApis();
    run = await AppendedRun.start(system, pods.caller(0));
    await run.write('early', 'not so early');
    early = await readLog(pods.caller(0), run.threadId);
    for (let from = 0; from < NEWER; from += APPENDED_AT_ONCE) await run.write(...texts(APPENDED_AT_ONCE, from));
  }, 120_000);

  afterAll(async () => {
    await expectHealthy(system.database);
    await run.close();
    await system.stop();
  });

  const texts = (count: number, from: number): string[] =>
    Array.from({ length: count }, (_, i) => `piece ${from + i} `);

  test(
    'by the header or `after`, whatever `limit` says and while more come, shows all of them once and in order',
    async () => {
      const at = early.at(-2)!.id;
      const other = early.at(-1)!.id;
      const resumes = [
        readStream(pods.caller(0), streamOf(run.threadId, '&limit=1'), { lastEventId: at }),
        readStream(pods.caller(1), streamOf(run.threadId, `&after=${at}&limit=0`)),
        // The header is the newer one.
        readStream(pods.caller(0), streamOf(run.threadId, `&after=${other}&limit=5`), { lastEventId: at }),
        readCutInTheMiddle(at),
      ];
      // Never the start of the log, when it is not asked for.
      const latest = await readStream(pods.caller(1), streamOf(run.threadId, '&limit=7'), { stop: countTo(7) });
      for (let from = 0; from < LIVE; from += 20) await run.write(...texts(20, NEWER + from));
      await run.complete();

      const log = await readLog(pods.caller(0), run.threadId);
      const newer = log.slice(log.findIndex(({ id }) => id === at) + 1);
      expect(newer.length).toBeGreaterThan(NEWER + LIVE);
      for (const resume of resumes) {
        const frames = await resume;
        expect(frames.at(-1)?.event).toBe('thread.idle');
        expect(frames.slice(0, -1).map(({ id }) => id)).toEqual(newer.map(({ id }) => id));
        expect(entriesOf(frames)).toEqual(newer);
      }
      const first = log.findIndex(({ id }) => id === latest[0]!.id);
      expect(entriesOf(latest)).toEqual(log.slice(first, first + 7));
      expect(first).toBeGreaterThanOrEqual(NEWER - 7);
    },
    upTo(60_000),
  );

  const countTo = (count: number) => {
    let seen = 0;
    return (): boolean => ++seen === count;
  };

  /** Cut in the middle of what is newer, and resumed on the other process. */
  async function readCutInTheMiddle(lastEventId: string): Promise<Frame[]> {
    const path = streamOf(run.threadId);
    const first = await readStream(pods.caller(1), path, { lastEventId, stop: countTo(NEWER / 2) });
    return [...first, ...(await readStream(pods.caller(0), path, { lastEventId: first.at(-1)?.id }))];
  }
});
