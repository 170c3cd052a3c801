import type { Overview, QueueStatus } from '#contract';

/** The time range of an overview, in parts of equal length. */
export interface Window {
  /** Start of the first part. */
  since: string;
  /** Length of a part. */
  seconds: number;
  parts: number;
}

/** A row of overview-runs.sql, or the sum of several rows of one part. */
export interface Part extends Counts {
  /** Null for the whole window. */
  part: number | null;
  /** p50, p95 and p99 of the time from creation to start, milliseconds. */
  starts: (number | null)[] | null;
}

interface Counts {
  created: number;
  /** The number of created Runs that have started. */
  started: number;
  completed: number;
  failed: number;
  cancelled: number;
  expired: number;
  live: number;
  booting: number;
}

const nothing: Counts = {
  ...{ created: 0, started: 0, live: 0, booting: 0 },
  ...{ completed: 0, failed: 0, cancelled: 0, expired: 0 },
};
const COUNTS = Object.keys(nothing) as (keyof Counts)[];

function addUp(rows: readonly Part[], part: number | null): Part {
  const sum: Part = { part, ...nothing, starts: rows.find(({ starts }) => starts !== null)?.starts ?? null };
  for (const row of rows) for (const name of COUNTS) sum[name] += row[name];
  return sum;
}

/** Returns the Runs of the whole window by status, and their start latency. */
export function wholeOf(rows: readonly Part[], queue: QueueStatus): Pick<Overview, 'runs' | 'startLatency'> {
  const whole = addUp(
    rows.filter(({ part }) => part === null),
    null,
  );
  const { started, starts, completed, failed, cancelled, expired } = whole;
  const { ready, delayed, limited, leased, waiting } = queue.runs;
  const booting = Math.min(whole.booting, leased);
  const live = { queued: ready + delayed + limited, booting, running: leased - booting, waiting_input: waiting };
  return {
    runs: { ...live, completed, failed, cancelled, expired },
    startLatency: { count: started, p50Ms: at(starts, 0), p95Ms: at(starts, 1), p99Ms: at(starts, 2) },
  };
}

/** Returns all parts of the window, including empty ones. */
export function seriesOf(rows: readonly Part[], { since, seconds, parts }: Window): Overview['series'] {
  const byPart = new Map<number | null, Part[]>();
  for (const row of rows) {
    // Counts Runs of a process whose clock is ahead of the database in the last part.
    const part = row.part === null ? null : Math.min(row.part, parts - 1);
    byPart.set(part, [...(byPart.get(part) ?? []), row]);
  }
  const series: Overview['series'] = [];
  let { live } = addUp(byPart.get(null) ?? [], null);
  // Goes backwards from now: the live Runs at the start of a part follow from those at its end.
  for (let part = parts - 1; part >= 0; part--) {
    const { created, completed, failed, cancelled, expired, starts } = addUp(byPart.get(part) ?? [], part);
    const startOf = new Date(Date.parse(since) + part * seconds * 1_000).toISOString();
    const ended = { completed, failed, cancelled, expired };
    series.unshift({ at: startOf, created, ...ended, live, startP50Ms: at(starts, 0), startP95Ms: at(starts, 1) });
    live = Math.max(0, live - created + completed + failed + cancelled + expired);
  }
  return series;
}

/** Returns a percentile. Raises negative times to 0, because they come from two clocks. */
function at(starts: Part['starts'], index: number): number | null {
  const ms = starts?.[index] ?? null;
  return ms === null ? null : Math.max(0, ms);
}
