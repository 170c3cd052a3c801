import { useClock } from './clock.ts';
import { formatDuration } from './format.ts';
import { runTimes, type RunTimes, type Times } from './run-times.ts';

/** One of the times of a Run, which grows while the Run does. */
export function RunTime({ run, which }: { run: Times; which: keyof RunTimes }) {
  return useClock((now) => {
    const ms = runTimes(run, now)[which];
    return ms === null ? '–' : formatDuration(ms);
  });
}
