import { setTimeout as sleep } from 'node:timers/promises';

/** A line of progress at most so often: a reader is not served by more. Milliseconds. */
const EVERY_MS = 500;

/** Stops the work at its next report. */
class Stopped extends Error {}

/**
 * The latest report of long work from time to time, and its last one, each made a line by `describe`. When the signal is
 * aborted, or nobody reads on, the work is stopped at its next report; the lines end when it has.
 */
export async function* linesOf<Report extends object, Line>(
  describe: (report: Report, done: boolean) => Line,
  work: (onProgress: (report: Report) => void) => Promise<Report>,
  signal: AbortSignal,
): AsyncGenerator<Line> {
  let latest: Report | null = null;
  let isLeft = false;
  const ending = work((report) => {
    if (isLeft || signal.aborted) throw new Stopped();
    latest = report;
  }).then((report) => ({ report }));
  try {
    for (;;) {
      const ended = await Promise.race([ending, sleep(EVERY_MS, null, { ref: false })]);
      if (ended !== null) {
        yield describe(ended.report, true);
        return;
      }
      const line: Line | null = latest && describe(latest, false);
      latest = null;
      if (line !== null) yield line;
    }
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  } finally {
    isLeft = true;
    await ending.catch(() => undefined); // told above
  }
}
