import { eventually } from './eventually.ts';

const TRIES = 3;

/** Something took longer than it may. */
export class TooSlow extends Error {}

/**
 * What a timed test says of a time, last of all: that something is lost says more than that it is late.
 *
 * @param what as in "the next Run began after": what took so long
 * @throws TooSlow when it was not within the bound
 */
export function expectWithin(boundMs: number, tookMs: number, what: string): void {
  if (!(tookMs <= boundMs)) throw new TooSlow(`${what} ${tookMs.toFixed(0)} ms, not ${boundMs.toFixed(0)} at most`);
}

/** Waits until it is so, and holds how long that took against the bound. */
export async function eventuallyWithin(
  boundMs: number,
  ask: Parameters<typeof eventually>[0],
  what: string,
): Promise<void> {
  const startedAt = performance.now();
  await eventually(ask, { what, timeoutMs: 15_000 + boundMs });
  expectWithin(boundMs, performance.now() - startedAt, `${what}, after`);
}

/**
 * Has it done again, twice at most, when `expectWithin` is what failed, and nothing else. A bound is a claim about the program,
 * and all else that a machine does can only add to a time: a program that is too slow is so each time. What is done has to bear
 * being done again after itself, or after what `again` makes ready.
 */
export async function withinBounds(body: () => Promise<void>, again = nothing, tell = toStderr): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await body();
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === TRIES) throw error;
      tell(`${error.message}: tried again\n`);
      await again();
    }
  }
}

const nothing = (): Promise<void> => Promise.resolve();
const toStderr = (text: string): void => void process.stderr.write(text);

/** A test of how long something takes. `timeoutMs` is for one try. */
export function timedTest(
  name: string,
  body: () => Promise<void>,
  timeoutMs: number,
  again?: () => Promise<void>,
): void {
  test(name, () => withinBounds(body, again), TRIES * timeoutMs);
}
