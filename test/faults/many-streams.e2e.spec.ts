import { execFileSync } from 'node:child_process';
import { describeWithRedis, eventually, redisUrl, reportFigure } from '#testing';
import { allRunsCompleted, expectHealthy } from '../support/checks.ts';
import { inParallel, readLog, send, type Caller, type LogEntry, type ThreadAnswer } from '../support/client.ts';
import { LeanReader } from '../support/lean-reader.ts';
import { KB, ProcessGauge } from '../support/process-gauge.ts';
import { isLong, startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

const STREAMS = isLong ? 10_000 : 500;
const MESSAGES_A_SECOND = isLong ? 100 : 20;
/** Threads that messages go to; the others are idle all the time. Each has one every five seconds or more seldom. */
const BUSY = STREAMS / 10;
/** Acknowledged before the pod is killed, and after all streams are back. */
const MESSAGES_BEFORE = (isLong ? 10 : 2) * MESSAGES_A_SECOND;
const MESSAGES_AFTER = (isLong ? 5 : 1) * MESSAGES_A_SECOND;
const RESUMED_WITHIN_MS = 10_000;
const CONNECTIONS = 64;
/** Tries of a message whose answer did not come, before it counts as lost. */
const TRIES = 5;

/** This process and the API that is left hold them all. Node raises the soft limit itself, and children inherit it. */
function requireOpenFiles(): void {
  const limit = execFileSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
  const needed = STREAMS + 1_000;
  if (limit !== 'unlimited' && Number(limit) < needed)
    throw new Error(`${STREAMS} streams need ${needed} open files, and ${limit} are allowed: ulimit -Hn`);
}

/** One Thread and its reader, who comes back by himself as a browser does: after the time that he was told, by the last id. */
interface Follower {
  threadId: string;
  reader: LeanReader;
  seen: LogEntry[];
  /** Which of the two API processes he reads from. */
  pod: 0 | 1;
}

describeWithRedis(`${STREAMS} streams over two api processes, one of them killed (F11)`, () => {
  let system: System;
  let apis: [ApiProcess, ApiProcess];
  let gauge: ProcessGauge;
  let followers: Follower[];
  /** Since the kill, milliseconds, of each stream that was cut: when it was open again. */
  let resumedAfter: number[];
  let refusals: string[];

  beforeAll(async () => {
    [followers, resumedAfter, refusals] = [[], [], []];
    requireOpenFiles();
    system = await startSystem({
      queueUrl: redisUrl().url,
      // The Run before may take longer than the pace of messages.
      manifest: { whenBusy: 'enqueue' },
      env: { STREAMS_PER_TOKEN: '100000', RATE_LIMIT_PER_MINUTE: '1000000000' },
    });
    apis = await Promise.all([system.startApi(ProcessGauge.env), system.startApi()]);
    gauge = new ProcessGauge(apis[0].process);
    await system.startWorker();
  }, 120_000);

  afterAll(async () => {
    followers.forEach(({ reader }) => reader.leave());
    await system.stop();
  });

  const callerOf = (i: number): Caller => apis[i % 2]!.caller;

  async function newFollower(i: number): Promise<Follower> {
    const { agentId } = callerOf(i);
    const path = `/agents/${agentId}/threads`;
    const { status, body } = await send<ThreadAnswer>(callerOf(i), 'POST', path, { userId: 'tester' });
    expect(status).toBe(201);
    const seen: LogEntry[] = [];
    const reader = new LeanReader(body.thread.id, (_id, data) => seen.push(JSON.parse(data) as LogEntry));
    return { threadId: body.thread.id, reader, seen, pod: i % 2 === 0 ? 0 : 1 };
  }

  /** The first process is killed: whoever read there comes back to the second, again and again until it lets him. */
  function comeBack(follower: Follower, killedAt: number): void {
    const { reader } = follower;
    setTimeout(() => {
      reader.visit(apis[1].caller).then(
        () => {
          follower.pod = 1;
          resumedAfter.push(performance.now() - killedAt);
        },
        (error: Error) => {
          refusals.push(error.message);
          comeBack(follower, killedAt);
        },
      );
    }, reader.retryMs);
  }

  test(
    `all are open again within ${RESUMED_WITHIN_MS / 1_000} s, with nothing missing, doubled or out of order`,
    async () => {
      followers = await inParallel(STREAMS, CONNECTIONS, newFollower);
      const { bytes: before } = await gauge.measure();
      const opening = performance.now();
      await inParallel(STREAMS, CONNECTIONS, (i) => followers[i]!.reader.visit(apis[followers[i]!.pod].caller));
      const openedMs = performance.now() - opening;
      const kbAStream = ((await gauge.measure()).bytes - before) / KB / (STREAMS / 2);

      const messages = new Messages(followers.slice(0, BUSY), apis);
      messages.start();
      const acknowledged = (count: number): Promise<unknown> =>
        eventually(() => messages.acknowledged >= count, { what: `${count} messages are sent`, timeoutMs: 60_000 });
      await acknowledged(MESSAGES_BEFORE);

      const cut = followers.filter(({ pod }) => pod === 0);
      const killedAt = performance.now();
      for (const follower of cut) follower.reader.onGone = () => comeBack(follower, killedAt);
      await apis[0].process.kill('SIGKILL');
      const areBack = (): boolean => resumedAfter.length >= cut.length;
      await eventually(areBack, { what: 'all streams are open again', timeoutMs: 60_000 });
      const sentInFault = messages.acknowledged;
      await acknowledged(sentInFault + MESSAGES_AFTER);
      const { runs, failed } = await messages.stop();

      const slowest = Math.max(...resumedAfter);
      reportFigure(
        `F11: ${STREAMS} streams opened in ${Math.round(openedMs)} ms, ${kbAStream.toFixed(1)} KB each; ` +
          `${cut.length} cut and open again after ${Math.round(Math.min(...resumedAfter))} to ${Math.round(slowest)} ms, ` +
          `${refusals.length} refusals; ${runs} messages, ${messages.repeated} repeated`,
      );
      expect(resumedAfter).toHaveLength(STREAMS / 2);
      expect(failed).toEqual([]);
      await allRunsCompleted(system.database, runs, 60_000);
      await expectLogsSeen();
      await expectHealthy(system.database);
      // Last: what is lost says more than what is late.
      expect(slowest).toBeLessThanOrEqual(RESUMED_WITHIN_MS);
    },
    upTo(120_000),
  );

  /** I8 for all that had entries, and for those that had none, that none was made up. */
  async function expectLogsSeen(): Promise<void> {
    const [busy, idle] = [followers.slice(0, BUSY), followers.slice(BUSY)];
    await inParallel(BUSY, 8, async (i) => {
      const { threadId, seen } = busy[i]!;
      const log = await readLog(apis[1].caller, threadId);
      expect(log.length).toBeGreaterThan(0);
      await eventually(() => seen.length >= log.length, { what: 'the reader has all of the log' });
      expect(seen).toEqual(log);
    });
    expect(idle.filter(({ seen }) => seen.length > 0)).toEqual([]);
  }
});

/** Sends messages to Threads in turn, at an even pace, through the two API processes in turn. */
class Messages {
  acknowledged = 0;
  /** Sent again with the same key, because no answer came. */
  repeated = 0;
  private readonly failed: string[] = [];
  private readonly underWay = new Set<Promise<void>>();
  private next = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly followers: Follower[],
    private readonly apis: [ApiProcess, ApiProcess],
  ) {}

  start(): void {
    this.timer = setInterval(() => {
      const sending = this.send(this.next++)
        .catch((error: unknown) => void this.failed.push(String(error)))
        .finally(() => this.underWay.delete(sending));
      this.underWay.add(sending);
    }, 1_000 / MESSAGES_A_SECOND);
  }

  async stop(): Promise<{ runs: number; failed: string[] }> {
    clearInterval(this.timer);
    await Promise.all(this.underWay);
    return { runs: this.acknowledged, failed: this.failed };
  }

  private async send(i: number): Promise<void> {
    const { threadId } = this.followers[i % this.followers.length]!;
    const events = [{ type: 'user_message', text: `message ${i}` }];
    const path = `/threads/${threadId}/events`;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { caller } = this.apis[(i + attempt) % 2]!;
      const ask = async () => {
        const key = { 'idempotency-key': `message-${i}` };
        const answer = await send(caller, 'POST', path, { events }, key).catch(() => null);
        // What was sent to the pod that was killed may still be under way in PostgreSQL.
        if (answer?.status === 409) throw new Error(JSON.stringify(answer.body));
        return { answer };
      };
      const { answer } = await eventually(ask, { what: `message ${i} is answered` });
      if (answer?.status === 200) return void this.acknowledged++;
      if (answer !== null) return void this.failed.push(`${answer.status} ${JSON.stringify(answer.body)}`);
      this.repeated++;
    }
    this.failed.push(`message ${i} had no answer`);
  }
}
