import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { readVersion } from '../process/version.ts';

const registry = new Registry();

/** Bucket bounds of durations that take milliseconds, in seconds. */
export const FAST = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
/** Bucket bounds of durations that people wait for, in seconds. */
export const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Bucket bounds of model calls and tool calls, in seconds. */
export const LONG = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/**
 * Label names with their values, or null if the values are not known in advance. A label never contains values from callers,
 * because each new value is a series that the process and Prometheus keep permanently.
 */
type Labels = Record<string, readonly string[] | null>;

/** Declares a counter. Series with known labels start at 0, because a series that starts at 1 has no rate. */
export const counter = <L extends Labels>(name: string, help: string, labels: L = {} as L) => {
  const labelNames = Object.keys(labels) as Extract<keyof L, string>[];
  const made = new Counter({ name, help, labelNames, registers: [registry] });
  for (const values of combinations(labels)) made.inc(values as never, 0);
  return made;
};
/** Declares a gauge. It has no value until it is set, so a process reports only what it has. */
export const gauge = <L extends Labels>(name: string, help: string, labels: L = {} as L) => {
  const labelNames = Object.keys(labels) as Extract<keyof L, string>[];
  const made = new Gauge({ name, help, labelNames, registers: [registry] });
  if (labelNames.length === 0) made.remove();
  return made;
};
/** Declares a histogram of durations, in seconds. */
export const histogram = <L extends Labels>(name: string, help: string, buckets: number[], labels: L = {} as L) => {
  const labelNames = Object.keys(labels) as Extract<keyof L, string>[];
  return new Histogram({ name, help, buckets, labelNames, registers: [registry] });
};

/** Returns every combination of the labels' values; none if some are not known in advance. */
function combinations(labels: Labels): Record<string, string>[] {
  let all: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    all = all.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value })));
  }
  return all;
}

/** The metrics that every process has. Each package declares its own in its `metrics.ts`. */
export const metrics = {
  databaseUp: gauge('spool_database_up', '1 if PostgreSQL answers this process.'),
  databaseConnections: gauge(
    'spool_database_connections',
    'Connections of the main pool, and requests waiting for one, by state.',
    {
      state: ['total', 'idle', 'waiting'],
    },
  ),
  buildInfo: gauge('spool_build_info', 'Versions of Spool and Node.js as labels; always 1.', {
    version: null,
    node: null,
  }),
};

/** Starts a clock. The returned function passes the outcome and the seconds to `count`; only the first call counts. */
export function timed<Outcome>(count: (outcome: Outcome, seconds: number) => void): (outcome: Outcome) => void {
  const startedAt = performance.now();
  let isOver = false;
  return (outcome) => {
    if (!isOver) count(outcome, (performance.now() - startedAt) / 1_000);
    isOver = true;
  };
}

/** How long a scrape waits for collectors, ms. A scrape must be answered within a second. */
const COLLECT_MS = 800;

const collectors = new Set<() => Promise<void> | void>();
let isCollecting = false;

/**
 * Calls `collect` at each scrape, to set gauges. Returns a function that ends that. A collector that fails or takes too long is
 * skipped, so it must first remove the values that it might not get.
 */
export function onScrape(collect: () => Promise<void> | void): () => void {
  collectors.add(collect);
  return () => void collectors.delete(collect);
}

/** Starts to collect the metrics of Node.js. Repeated calls have no effect. */
export function collectProcessMetrics(): void {
  if (isCollecting) return;
  isCollecting = true;
  collectDefaultMetrics({ register: registry });
  metrics.buildInfo.set({ version: readVersion(), node: process.version }, 1);
}

/** Returns all metrics in Prometheus' text format, within a second. Never rejects. */
export async function scrape(): Promise<{ contentType: string; text: string }> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => (timer = setTimeout(resolve, COLLECT_MS)));
  const collected = [...collectors].map(async (collect) => collect());
  await Promise.race([Promise.allSettled(collected), tooLate]);
  clearTimeout(timer);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/** Returns the declared metrics of all packages that this process has loaded, by name. */
export function describeMetrics(): { name: string; type: string; labels: string[] }[] {
  const metrics = registry.getMetricsAsArray().filter(({ name }) => name.startsWith('spool_'));
  return metrics.map((metric) => {
    const { name, labelNames, type } = metric as unknown as { name: string; labelNames: string[]; type: string };
    return { name, type, labels: [...labelNames] };
  });
}
