import type { Random } from '../support/random.ts';

/** One of the simulated machine's processes; it ends by a crash, and what is started in its place is another. */
export class SimulatedProcess {
  alive = true;
  /** Stopped (SIGSTOP) since and until then; its clocks go on. */
  pausedSince = 0;
  pausedUntil = 0;
  /** What would have happened in it meanwhile. */
  readonly held: Task[] = [];
  /** How far its wall clock is off, milliseconds. Nothing ever sets its monotonic one. */
  wallOffset = 0;
  /** Until when nothing gets from it to the database or back. */
  cutOffUntil = 0;

  constructor(
    readonly name: string,
    readonly monotonicOffset: number,
  ) {}
}

/** Something that is to happen. */
export interface Task {
  at: number;
  order: number;
  /** Whose code runs; null for servers and networks, which may await nothing. */
  owner: SimulatedProcess | null;
  run: () => void;
  dropped: boolean;
}

/**
 * The only thing that lets anything happen: one task after the other, the earliest first, and all that follows from it in
 * its process up to the next await of something outside. How long things take is drawn from the seed, so the seed decides
 * their order.
 */
export class Scheduler {
  /** Milliseconds since the simulation began. */
  now = 0;
  /** Whose code is running. */
  current: SimulatedProcess | null = null;
  steps = 0;
  private readonly heap: Task[] = [];
  private order = 0;

  constructor(readonly random: Random) {}

  after(ms: number, owner: SimulatedProcess | null, run: () => void): Task {
    const task = { at: this.now + Math.max(0, ms), order: this.order++, owner, run, dropped: false };
    this.push(task);
    return task;
  }

  /** Stops a process as SIGSTOP does, for so long or until `resume`. */
  pause(process: SimulatedProcess, ms: number): void {
    if (process.pausedUntil <= this.now) process.pausedSince = this.now;
    process.pausedUntil = this.now + ms;
    this.after(ms, null, () => {
      if (process.pausedUntil <= this.now) this.resume(process);
    });
  }

  /** What was held up happens now, in its order. */
  resume(process: SimulatedProcess): void {
    process.pausedUntil = Math.min(process.pausedUntil, this.now);
    for (const task of process.held.splice(0)) {
      task.at = this.now;
      this.push(task);
    }
  }

  /** Runs tasks until that time, or until `isOver` says so after one. */
  runUntil(time: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const tick = (): void => process.nextTick(next);
      const next = (): void => {
        try {
          for (;;) {
            const task = isOver() ? undefined : this.take(time);
            if (task === undefined) return resolve();
            this.steps++;
            this.current = task.owner;
            task.run();
            if (task.owner !== null) break;
          }
          // A microtask's tick comes when no microtask is left: then all that followed from the task has happened.
          void RESOLVED.then(tick);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      next();
    });
  }

  private take(until: number): Task | undefined {
    for (let task = this.heap[0]; task !== undefined && task.at <= until; task = this.heap[0]) {
      this.pop();
      if (task.dropped || task.owner?.alive === false) continue;
      this.now = Math.max(this.now, task.at);
      if (task.owner === null || task.owner.pausedUntil <= this.now) return task;
      task.owner.held.push(task);
    }
    this.now = Math.max(this.now, until);
    return undefined;
  }

  private push(task: Task): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(task);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(task, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = task;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

/** `queueMicrotask` does the same, but follows each by an async resource. */
const RESOLVED = Promise.resolve();

function isBefore(a: Task, b: Task): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
