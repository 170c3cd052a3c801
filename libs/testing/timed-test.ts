import { appendFileSync } from 'node:fs';
import { eventually } from './eventually.ts';
import { TurnWatch } from './turn-watch.ts';

const TRIES = 3;
/** A pause of this length may correctly cost a process a lease or its trust in a cached policy. */
const PAUSED_MS = 500;

/** A time exceeded its bound. */
export class TooSlow extends Error {}

/**
 * Checks a latency of the product. Call it last in a timed test, because a missing effect says more than a late one. For a
 * safety property use `expect`, so that the first violation fails the test.
 *
 * @param what names the time, as in "the next Run began after"
 * @throws TooSlow when the time exceeds the bound
 */
export function expectWithin(boundMs: number, tookMs: number, what: string): void {
  if (!(tookMs <= boundMs)) throw new TooSlow(`${what} ${tookMs.toFixed(0)} ms (bound: ${boundMs.toFixed(0)} ms)`);
}

/** Waits until the condition holds, and checks how long that took against the bound. */
export async function eventuallyWithin(
  boundMs: number,
  ask: Parameters<typeof eventually>[0],
  what: string,
): Promise<void> {
  const startedAt = performance.now();
  await eventually(ask, { what, timeoutMs: 15_000 + boundMs });
  expectWithin(boundMs, performance.now() - startedAt, `${what}, after`);
}

/** One run of a test that was repeated. `scripts/ci-result.mjs` reads these. */
export interface TimedTestRepeat {
  test: string;
  /** The reason: the time and its bound, or the pause. */
  message: string;
}

/**
 * Measures again at most twice, and only when `expectWithin` failed. Other work on the machine can only add to a latency,
 * so a product that is too slow fails each time. The body must be repeatable, by itself or after `again`.
 */
export async function withinBounds(body: () => Promise<void>, again = nothing, record = recordRepeat): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await body();
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === TRIES) throw error;
      record({ test: expect.getState().currentTestName ?? 'a hook', message: error.message });
      await again();
    }
  }
}

/** Defines a test of a latency. `timeoutMs` applies to one try. */
export function timedTest(
  name: string,
  body: () => Promise<void>,
  timeoutMs: number,
  again?: () => Promise<void>,
): void {
  test(name, () => withinBounds(body, again), TRIES * timeoutMs);
}

/**
 * Runs the body again at most twice, and only if this process was paused during the failed run. Without a pause, the first
 * failure counts.
 */
export async function withoutPauses(body: () => Promise<void>, again = nothing, record = recordRepeat): Promise<void> {
  for (let tries = 1; ; tries++) {
    const turns = new TurnWatch();
    try {
      return await body();
    } catch (error) {
      const pausedMs = turns.longestPauseMs;
      if (pausedMs < PAUSED_MS || tries === TRIES) throw error;
      const message = `the process was paused for ${pausedMs.toFixed(0)} ms`;
      record({ test: expect.getState().currentTestName ?? 'a hook', message });
      await again();
    } finally {
      turns.stop();
    }
  }
}

/** Defines a test that a pause of the process may fail. `timeoutMs` applies to one try. */
export function unpausedTest(
  name: string,
  body: () => Promise<void>,
  timeoutMs: number,
  again?: () => Promise<void>,
): void {
  test(name, () => withoutPauses(body, again), TRIES * timeoutMs);
}

const nothing = (): Promise<void> => Promise.resolve();

/** Appends a line to the file that `.ci/run` names. `.ci/run` counts these lines at its end. */
function recordRepeat(repeat: TimedTestRepeat): void {
  process.stderr.write(`${repeat.test}: ${repeat.message}; running it again\n`);
  const file = process.env.SPOOL_TIMED_TESTS_FILE;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(repeat)}\n`);
}
