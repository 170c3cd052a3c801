import { setTimeout as sleep } from 'node:timers/promises';

/** The interval of progress lines, milliseconds. */
const EVERY_MS = 500;

/** Thrown into the work at its next report, to stop it. */
class Stopped extends Error {}

/**
 * Yields the latest report of long work at intervals, and the final one, each through `describe`. Stops the work at its next report
 * when the signal is aborted or the reader leaves. Ends after the work has ended.
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
    await ending.catch(() => undefined); // thrown above
  }
}
