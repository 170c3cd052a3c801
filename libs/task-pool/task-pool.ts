import { type Logger } from '#platform';
import { FairQueue } from './fair-queue.ts';
import { PoolChild } from './pool-child.ts';
import { TaskFailed, type Payload, type RunTask, type Task, type TaskInput } from './task.ts';
import { metrics } from './metrics.ts';

export interface TaskPoolOptions {
  /** The most children at once. One organization uses at most half of them, rounded up. */
  size: number;
  /** The most memory of one child. Bytes. */
  memoryBytes: number;
  /** A child that is idle for longer ends. Milliseconds. */
  idleMs?: number;
  /** The most calls of one organization that wait for a child. */
  maxWaiting?: number;
  logger: Logger;
  /** Starts a child; throws if it cannot. */
  startChild?: (memoryBytes: number) => PoolChild;
}

const IDLE_MS = 30_000;
const MAX_WAITING = 100;

interface WaitingCall {
  task: Task<unknown, unknown>;
  organizationId: string;
  /** Runs it on this child; never rejects. */
  start: (child: PoolChild) => Promise<void>;
  reject: (error: unknown) => void;
}

/**
 * Runs work that may run away in child processes, within limits of time and memory (docs/adr/0022-task-pool.md). Processes,
 * not threads: a thread that runs out of memory can end the whole process. Children start when they are needed and are
 * reused. The children are shared fairly among organizations.
 */
export class TaskPool {
  private readonly queue: FairQueue<WaitingCall>;
  private readonly children = new Set<PoolChild>();
  private readonly idle = new Map<PoolChild, NodeJS.Timeout>();
  private isClosed = false;

  constructor(private readonly options: TaskPoolOptions) {
    const { size, maxWaiting = MAX_WAITING } = options;
    this.queue = new FairQueue({ maxRunning: Math.ceil(size / 2), maxWaiting });
  }

  /** Throws TaskFailed, the signal's reason, and what loading the input throws. */
  async run<Input, Output>(
    task: Task<Input, Output>,
    input: TaskInput<Input>,
    { organizationId, signal }: { organizationId: string; signal?: AbortSignal | undefined },
  ): Promise<Payload<Output>> {
    signal?.throwIfAborted();
    const answer = new Promise<Payload<unknown>>((resolve, reject) => {
      const load = typeof input === 'function' ? input : async () => input;
      const start = (child: PoolChild) => child.run(task, load, signal).then(resolve, reject);
      this.enqueue({ task, organizationId, start, reject }, signal);
    });
    return this.counted(task, answer, signal) as Promise<Payload<Output>>;
  }

  /** Returns `run` on behalf of one organization. */
  runnerFor(organizationId: string): RunTask {
    return (task, input, signal) => this.run(task, input, { organizationId, signal });
  }

  /** Ends all children. Calls under way fail as `crashed`, and waiting ones as `overloaded`. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const { task, reject } of this.queue.drain()) reject(new TaskFailed(task.name, 'overloaded'));
    for (const child of this.children) child.close();
    await Promise.all([...this.children].map(({ exited }) => exited));
  }

  private enqueue(call: WaitingCall, signal: AbortSignal | undefined): void {
    const { organizationId, task, reject } = call;
    if (this.isClosed || !this.queue.add(organizationId, call, performance.now())) {
      return reject(new TaskFailed(task.name, 'overloaded'));
    }
    const abort = (): void => {
      if (this.queue.remove(organizationId, call)) reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    const { start } = call;
    call.start = (child) => {
      signal?.removeEventListener('abort', abort);
      return start(child);
    };
    this.startWaiting();
  }

  private startWaiting(): void {
    while (!this.isClosed && (this.idle.size > 0 || this.children.size < this.options.size)) {
      const now = performance.now();
      const call = this.queue.take(now);
      if (call === undefined) return;
      try {
        void this.runOn(this.takeChild(), call, now);
      } catch (error) {
        call.reject(new TaskFailed(call.task.name, 'overloaded', String(error)));
        this.queue.ended(call.organizationId, now, now);
      }
    }
  }

  private async runOn(child: PoolChild, { organizationId, start }: WaitingCall, startedAt: number): Promise<void> {
    await start(child);
    // Its memory is free only once it has exited.
    if (!child.isAlive) await child.exited;
    this.queue.ended(organizationId, startedAt, performance.now());
    if (child.isAlive) this.keepIdle(child);
    this.startWaiting();
  }

  private takeChild(): PoolChild {
    for (const child of this.idle.keys()) {
      this.stopIdling(child);
      if (child.isAlive) return child;
    }
    const { memoryBytes, startChild = (bytes) => new PoolChild(bytes) } = this.options;
    const child = startChild(memoryBytes);
    this.children.add(child);
    void child.exited.then(() => {
      this.children.delete(child);
      this.stopIdling(child);
      this.startWaiting();
    });
    return child;
  }

  private keepIdle(child: PoolChild): void {
    const { idleMs = IDLE_MS } = this.options;
    const end = (): void => {
      this.stopIdling(child);
      child.kill();
    };
    this.idle.set(child, setTimeout(end, idleMs).unref());
  }

  private stopIdling(child: PoolChild): void {
    clearTimeout(this.idle.get(child));
    this.idle.delete(child);
  }

  private async counted<Answer>(
    { name: task }: Task<unknown, unknown>,
    answer: Promise<Answer>,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    try {
      const answered = await answer;
      metrics.poolTasks.inc({ task, outcome: 'ok' });
      return answered;
    } catch (error) {
      const failed = error instanceof TaskFailed ? error : null;
      const outcome = failed?.reason ?? (signal?.aborted ? 'aborted' : 'input');
      metrics.poolTasks.inc({ task, outcome });
      if (failed) this.options.logger.warn({ err: error, task, outcome }, 'task failed');
      throw error;
    }
  }
}
