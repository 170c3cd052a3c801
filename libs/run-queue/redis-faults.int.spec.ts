import { Redis } from 'ioredis';
import { pino } from 'pino';
import type { RunJob } from '#event-store';
import { ConfigError } from '#platform';
import {
  createTestDatabase,
  describeWithPrivateRedis,
  eventually,
  type PrivateRedis,
  startPrivateRedis,
  type TestDatabase,
} from '#testing';
import { openRunQueue } from './open-run-queue.ts';
import { Installation } from './run-queue.testing.ts';
import { QueueUnavailable } from './run-queue.ts';

// Real: PostgreSQL, BullMQ, and a redis-server of this file's own, which is stopped, killed and emptied (F4 and F5 of
// docs/reliability.md#faults).

const jobOf = (runId: string): RunJob => ({ runId, threadId: 'thread', dispatch: 1 });

describeWithPrivateRedis('a Redis that fails', () => {
  let database: TestDatabase;
  let redis: PrivateRedis;
  let on: Installation;
  const unhandled: unknown[] = [];
  const noteUnhandled = (reason: unknown): void => void unhandled.push(reason);

  beforeAll(async () => {
    database = await createTestDatabase();
  });

  afterAll(() => database.drop());

  const open = async (): Promise<void> => {
    process.on('unhandledRejection', noteUnhandled);
    redis = await startPrivateRedis();
    on = await Installation.open(database.url, redis.url);
    await on.registerWorker('worker', 8);
  };
  const close = async (): Promise<void> => {
    redis.resume();
    try {
      await on.close();
    } finally {
      await redis.stop();
    }
    process.off('unhandledRejection', noteUnhandled);
    expect(unhandled.splice(0)).toEqual([]);
  };
  beforeEach(open);
  afterEach(close);

  /** Adds Runs continuously, until stopped, and enqueues each by the fast path. */
  function commitRuns(): { stop(): Promise<number> } {
    let stopped = false;
    const running = (async () => {
      let count = 0;
      while (!stopped) {
        const [run] = await on.addReadyRuns('org', 1);
        on.enqueuer.enqueueSoon(run!);
        count++;
      }
      return count;
    })();
    return {
      stop: () => {
        stopped = true;
        return running;
      },
    };
  }

  it('enqueues ready Runs again after Redis was emptied under load, and workers continue', async () => {
    const consumed = on.consumeRuns(8);
    on.startDispatcher();
    const commits = commitRuns();
    for (let i = 1; i <= 3; i++) {
      await on.waitFor(consumed, i * 50);
      await redis.flushAll();
    }
    await on.waitFor(consumed, consumed.length + 50);
    const count = await commits.stop();
    await on.waitFor(consumed, count);
    expect(new Set(consumed).size).toBe(count);
  });

  const killed = async (): Promise<void> => {
    const consumed = on.consumeRuns(8);
    on.startDispatcher();
    const commits = commitRuns();
    await on.waitFor(consumed, 50);
    await redis.kill();
    await eventually(
      () =>
        on.queue.waitingCount().then(
          () => false,
          () => true,
        ),
      { what: 'the queue is unavailable' },
    );
    const before = consumed.length;
    await eventually(() => on.controls.isHeld(), { what: 'queue time has stopped' });
    await eventually(() => on.log.includes('enqueueing failed'), {
      what: 'the fast path has failed',
    });

    await redis.start();
    await on.waitFor(consumed, before + 50);
    const count = await commits.stop();
    await on.waitFor(consumed, count);
    expect(new Set(consumed).size).toBe(count);
    await eventually(async () => !(await on.controls.isHeld()), { what: 'queue time continues' });
  };
  it('continues Runs after Redis was killed and came back empty', killed, 30_000);

  const silent = async (): Promise<void> => {
    await on.queue.enqueue([jobOf('before')]);
    redis.pause();
    for (let i = 0; i < 20_000; i++) on.enqueuer.enqueueSoon(jobOf(`silent${i}`));
    expect(on.enqueuer.inFlight).toBe(1_000);
    await eventually(() => on.enqueuer.inFlight === 0, { what: 'the jobs are dropped' });
    await expect(on.queue.waitingCount()).rejects.toThrow(QueueUnavailable);

    redis.resume();
    const runs = await on.addReadyRuns('org', 20);
    const consumed = on.consumeRuns(8);
    on.startDispatcher();
    await on.waitFor(consumed, runs.length);
  };
  it('keeps at most 1,000 jobs in memory while Redis is silent, and continues afterwards', silent, 30_000);

  const silentToWorker = async (): Promise<void> => {
    const consumed = on.consumeRuns(8);
    on.startDispatcher();
    await on.addReadyRuns('org', 1);
    await on.waitFor(consumed, 1);
    redis.pause();
    await on.addReadyRuns('org', 20);
    await eventually(() => on.log.includes('dispatcher tick failed"'), { what: 'the dispatcher has noticed' });
    redis.resume();
    await on.waitFor(consumed, 21);
  };
  it('continues a waiting worker after Redis was silent', silentToWorker, 30_000);

  it('keeps the connections of a worker whose process was blocked for longer than the allowed silence', async () => {
    const disconnect = jest.spyOn(Redis.prototype, 'disconnect');
    const ping = jest.spyOn(Redis.prototype, 'ping');
    const send = ping.getMockImplementation() as () => Promise<'PONG'>;
    try {
      const block = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
      ping.mockImplementation(function (this: Redis) {
        // Blocks after the command was sent, before the response is read.
        if (ping.mock.calls.length === 1) process.nextTick(block);
        return send.call(this);
      });
      on.queue.consume(async () => undefined, 1);
      await eventually(() => ping.mock.calls.length >= 3, { what: 'the worker has checked its connection since' });
      expect(disconnect).not.toHaveBeenCalled();
    } finally {
      ping.mockRestore();
      disconnect.mockRestore();
    }
  });

  it('refuses a Redis that may evict keys at start, with a one-line error', async () => {
    const client = new Redis(redis.url);
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    client.disconnect();
    const opening = openRunQueue({ url: redis.url, name: 'test', logger: on.logger });
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow(/^Wrong configuration: QUEUE_URL: .* allkeys-lru; set it to noeviction$/);
  });

  it('starts without Redis, and enqueues once Redis is there', async () => {
    await redis.kill();
    const queue = await openRunQueue({ url: redis.url, name: on.name, logger: pino({ level: 'silent' }) });
    const delivered: RunJob[] = [];
    queue.consume(async (job) => void delivered.push(job), 1);
    await expect(queue.enqueue([jobOf('run')])).rejects.toThrow(QueueUnavailable);
    await redis.start();
    await eventually(() => queue.enqueue([jobOf('run')]).then(() => true), { what: 'the queue takes a job' });
    await eventually(() => delivered.length === 1, { what: 'it is delivered' });
    await queue.close();
  });
});
