import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import type { RunJob } from '#event-store';
import { connectRedis, openDatabase, type Database } from '#platform';
import { eventually } from '#testing';
import { Dispatcher } from './dispatcher.ts';
import { openRunQueue } from './open-run-queue.ts';
import { QueueControls } from './queue-controls.ts';
import { RunEnqueuer } from './run-enqueuer.ts';
import type { RunQueue, ShownRunQueue } from './run-queue.ts';
import { registerWorker, type RegisteredWorker } from './worker-registry.ts';

/**
 * An installation: its queue, dispatchers and workers. Everything is real except Runs, which are rows without a Thread. Each
 * installation starts with empty tables.
 */
export class Installation {
  readonly logger = pino({ level: 'info' }, { write: (line: string) => void (this.log += line) });
  readonly controls: QueueControls;
  readonly enqueuer: RunEnqueuer;
  /** The log so far. */
  log = '';
  private readonly dispatchers: Dispatcher[] = [];
  private readonly workers: RegisteredWorker[] = [];
  private runCount = 0;
  /** The number of looks of all dispatchers. Each look counts the waiting jobs once, even during a pause. */
  private looks = 0;

  private constructor(
    readonly name: string,
    readonly queue: ShownRunQueue,
    readonly databaseUrl: string,
    readonly queueUrl: string,
    private readonly database: Database,
  ) {
    this.controls = new QueueControls(this.pool, name);
    this.enqueuer = new RunEnqueuer({ queue, controls: this.controls, logger: this.logger });
  }

  static async open(databaseUrl: string, queueUrl = databaseUrl): Promise<Installation> {
    const database = await openDatabase({ url: databaseUrl, applicationName: 'test', maxConnections: 8 });
    await database.pool.query('delete from run_work; delete from workers; delete from queue_controls');
    const name = `test-${randomBytes(6).toString('hex')}`;
    const queue = await openRunQueue({ url: queueUrl, name, logger: pino({ level: 'silent' }) });
    return new Installation(name, queue, databaseUrl, queueUrl, database);
  }

  get pool(): Database['pool'] {
    return this.database.pool;
  }

  startDispatcher(queue: RunQueue = this.queue, idleMs?: number): Dispatcher {
    const { databaseUrl, pool, controls, logger } = this;
    const asked = (): Promise<number> => {
      this.looks++;
      return queue.waitingCount();
    };
    const counted = Object.create(queue, { waitingCount: { value: asked } }) as RunQueue;
    const dispatcher = new Dispatcher({ databaseUrl, pool, queue: counted, controls, logger, idleMs });
    this.dispatchers.push(dispatcher);
    dispatcher.start();
    return dispatcher;
  }

  async registerWorker(holder: string, slots: number): Promise<RegisteredWorker> {
    const worker = await registerWorker(this.pool, { holder, slots }, this.logger);
    this.workers.push(worker);
    return worker;
  }

  /** Adds Runs that became ready one after the other. */
  async addReadyRuns(organizationId: string, count: number): Promise<RunJob[]> {
    const runs: RunJob[] = [];
    for (let i = 0; i < count; i++) runs.push(await this.addRun(organizationId, 'ready', 600_000));
    return runs;
  }

  /** Adds a Run that waits for a limit that no longer exists. */
  async addLimitedRun(): Promise<RunJob> {
    return this.addRun('limited', 'limited', null);
  }

  /** Adds Runs that a worker has claimed; they end with the test. */
  async addClaimedRuns(organizationId: string, count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.addRun(organizationId, 'leased', 600_000);
  }

  async addDelayedRun(dueInMs: number | null): Promise<RunJob> {
    return this.addRun('delayed', 'delayed', dueInMs);
  }

  /** Waits for one whole look of the dispatcher. The first counted look may have begun before the call. */
  async lookedOnceMore(): Promise<void> {
    const wanted = this.looks + 3;
    const looked = (): boolean => {
      this.dispatchers.forEach((dispatcher) => dispatcher.nudge());
      return this.looks >= wanted;
    };
    await eventually(looked, { what: 'the dispatcher has looked' });
  }

  /** Waits for one whole check of the epoch marker and the workers. A check begins by deleting dead workers. */
  async checkedOnceMore(): Promise<void> {
    const gone = async (): Promise<boolean> =>
      (await this.pool.query(`select from workers where holder = 'dead'`)).rowCount === 0;
    for (let i = 0; i < 2; i++) {
      await this.pool.query(`insert into workers values ('dead', 1000, now() - interval '2 minutes')`);
      await eventually(gone, { what: 'the dispatcher has checked' });
    }
  }

  /** Moves the times of pauses and Runs into the past. */
  async letTimePass(interval: string): Promise<void> {
    await this.pool.query('update queue_controls set paused_at = paused_at - $1::interval', [interval]);
    await this.pool.query(`update run_work set since = since - $1::interval, due_at = due_at - $1::interval`, [
      interval,
    ]);
  }

  /** Returns the Run's remaining queue time in minutes, rounded. */
  async minutesLeft(runId: string): Promise<number> {
    const { rows } = await this.pool.query<{ left: number }>(
      `select round(extract(epoch from due_at - clock_timestamp()) / 60)::integer as left from run_work where run_id = $1`,
      [runId],
    );
    return rows[0]!.left;
  }

  /** Claims the Run like a worker, and ends it. Returns whether the claim succeeded. */
  async claim({ runId, dispatch }: RunJob): Promise<boolean> {
    const { rowCount } = await this.pool.query(
      `delete from run_work where run_id = $1 and dispatch = $2 and state = 'ready'`,
      [runId, dispatch],
    );
    return rowCount === 1;
  }

  /** Pauses the queue like Bull Board or a script, and records it. */
  async pauseByTool(): Promise<void> {
    await this.queue.shown.pause();
    await this.controls.checkToolPause(this.queue);
  }

  /** Resumes the queue like the tool that paused it, and records it. */
  async resumeByTool(): Promise<void> {
    await this.queue.shown.resume();
    await this.controls.checkToolPause(this.queue);
  }

  /** Claims delivered Runs. Returns their ids in order, a list that grows. */
  consumeRuns(slots: number): string[] {
    const runs: string[] = [];
    this.queue.consume(async (job) => {
      if (await this.claim(job)) runs.push(job.runId);
    }, slots);
    return runs;
  }

  async waitFor(runs: string[], count: number, timeoutMs = 15_000): Promise<void> {
    await eventually(() => runs.length >= count, { what: `${count} Runs are consumed`, timeoutMs });
  }

  async close(): Promise<void> {
    await Promise.all(this.dispatchers.map((dispatcher) => dispatcher.stop()));
    await Promise.all(this.workers.map((worker) => worker.close()));
    await this.enqueuer.close();
    await this.queue.close();
    await this.database.close();
  }

  private async addRun(organizationId: string, state: string, dueInMs: number | null): Promise<RunJob> {
    const runId = `${organizationId}-${String(++this.runCount).padStart(6, '0')}`;
    await this.pool.query(
      `insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, due_at, since, queue_ms,
                             work_left)
       values ($1, 'thread', $2, 'agent', $3, 1, 0, clock_timestamp() + $4 * interval '1 ms', clock_timestamp(), 600000,
               interval '1 hour')`,
      [runId, organizationId, state, dueInMs],
    );
    return { runId, threadId: 'thread', dispatch: 1 };
  }
}

/** Deletes all keys of the queue in one step, like FLUSHALL. One by one, a job that is in no list could remain. */
export async function deleteKeys({ name, queueUrl }: Installation): Promise<void> {
  const redis = connectRedis(queueUrl, {});
  const script = `for _, key in ipairs(redis.call('keys', ARGV[1])) do redis.call('del', key) end`;
  await redis.eval(script, 1, `{${name}}`, `{${name}}*`);
  redis.disconnect();
}
