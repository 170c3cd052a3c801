import type { Scheduler, Task } from './scheduler.ts';

/** When every simulation begins, by the database's clock. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

let running: Scheduler | null = null;

/** The scheduler of the simulation that runs. */
export function runningScheduler(): Scheduler | null {
  return running;
}

/**
 * Gives the code under simulation clocks, timers and random numbers of its process: it takes them from the globals, so
 * nothing of it has to know. Answers how to put the real ones back.
 */
export function simulateTime(scheduler: Scheduler): () => void {
  const real = Object.fromEntries(GLOBALS.map((name) => [name, globalThis[name]]));
  const { now } = Date;
  const { random } = Math;
  running = scheduler;
  const timers = simulatedTimers(scheduler);
  const monotonic = () => scheduler.now + (scheduler.current?.monotonicOffset ?? 0);
  Object.assign(globalThis, { ...timers, performance: { now: monotonic } });
  Date.now = () => Math.floor(EPOCH_MS + scheduler.now + (scheduler.current?.wallOffset ?? 0));
  Math.random = () => scheduler.random.below(2 ** 30) / 2 ** 30;
  return () => {
    Object.assign(globalThis, real);
    Date.now = now;
    Math.random = random;
    running = null;
  };
}

const GLOBALS = [
  ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'] as const),
  'performance',
] as const;

class Timer {
  task: Task | null = null;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

function simulatedTimers(scheduler: Scheduler) {
  const clear = (timer: Timer | null | undefined): void => {
    if (timer?.task) timer.task.dropped = true;
  };
  return {
    setTimeout: (run: () => void, ms = 1): Timer => {
      const timer = new Timer();
      timer.task = scheduler.after(Math.max(1, ms), scheduler.current, run);
      return timer;
    },
    setInterval: (run: () => void, ms: number): Timer => {
      const timer = new Timer();
      const { current } = scheduler;
      const next = (): void => {
        timer.task = scheduler.after(Math.max(1, ms), current, () => {
          next();
          run();
        });
      };
      next();
      return timer;
    },
    setImmediate: (run: () => void): Timer => {
      const timer = new Timer();
      timer.task = scheduler.after(0, scheduler.current, run);
      return timer;
    },
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
}
