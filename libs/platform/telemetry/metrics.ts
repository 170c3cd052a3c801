import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { readVersion } from '../process/version.ts';

const registry = new Registry();

/** Upper bounds, seconds: of what takes milliseconds, of what a person waits for, and of what models and tools take. */
const FAST = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const LONG = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** As manifests have them (libs/agents/manifest.ts), and the errors that their calls end with (libs/agents/model/provider-errors.ts). */
const PROVIDERS = ['anthropic', 'openai-compatible'];
const PROVIDER_FAILURES = [
  ...['provider_unavailable', 'provider_rate_limited', 'provider_rejected', 'provider_quota_exhausted'],
  ...['provider_auth', 'content_filtered', 'context_too_long'],
];

/** Label names with their values; null where others than this table know them. */
type Labels = Record<string, readonly string[] | null>;

const counter = <L extends Labels>(name: string, help: string, labels: L = {} as L) => {
  const labelNames = Object.keys(labels) as Extract<keyof L, string>[];
  const made = new Counter({ name, help, labelNames, registers: [registry] });
  // From 0 on: of a series that begins with 1, no rate can be told.
  for (const values of combinations(labels)) made.inc(values as never, 0);
  return made;
};
const gauge = <L extends Labels>(name: string, help: string, labels: L = {} as L) =>
  new Gauge({ name, help, labelNames: Object.keys(labels) as Extract<keyof L, string>[], registers: [registry] });
const histogram = <L extends Labels>(name: string, help: string, buckets: number[], labels: L = {} as L) => {
  const labelNames = Object.keys(labels) as Extract<keyof L, string>[];
  return new Histogram({ name, help, buckets, labelNames, registers: [registry] });
};

/** Every combination of the labels' values; none where some are not known here. */
function combinations(labels: Labels): Record<string, string>[] {
  let all: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    all = all.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value })));
  }
  return all;
}

/**
 * Every metric of Spool; docs/operations/metrics.md has the same list, kept equal by a test. A label's values are of a fixed
 * set, never what a caller has made: each new value is a series that the process and Prometheus keep for good.
 */
export const metrics = {
  httpRequests: counter('spool_http_requests_total', 'Completed HTTP requests.', {
    method: null,
    route: null,
    status: null,
  }),
  httpSeconds: histogram(
    'spool_http_request_duration_seconds',
    'Duration in seconds of HTTP requests, from arrival to the last byte of the response, without streamed responses.',
    WAITS,
    { method: null, route: null },
  ),
  httpOpen: gauge('spool_http_requests_open', 'HTTP requests in progress, including open event streams.'),
  bodyBytes: gauge(
    'spool_body_bytes',
    'Bytes of request bodies that this process holds; `BODY_BUDGET_BYTES` limits them.',
  ),

  appends: counter('spool_appends_total', 'Appends, by outcome.', {
    outcome: ['ok', 'conflict', 'refused', 'limited', 'unmet', 'away', 'failed'],
  }),
  appendSeconds: histogram(
    'spool_append_duration_seconds',
    'Duration in seconds of successful appends, including the wait for a connection.',
    FAST,
  ),

  offers: counter('spool_offers_total', 'Attempts to add the job of a Run to the queue.', {
    path: ['fast', 'dispatcher'],
    outcome: ['sent', 'dropped', 'failed'],
  }),
  offerSeconds: histogram(
    'spool_offer_latency_seconds',
    'Delay in seconds from a commit until the queue has the job, on the fast path.',
    FAST,
  ),
  runsCreated: counter('spool_runs_created_total', 'Created Runs.'),
  startSeconds: histogram(
    'spool_run_start_latency_seconds',
    'Delay in seconds from the creation of a Run to its first start, including boot, by the times of its events.',
    WAITS,
  ),
  bootSeconds: histogram(
    'spool_run_boot_duration_seconds',
    'Duration in seconds from the claim of a Run to its first step, which loads version, transcript and tool servers.',
    LONG,
    { outcome: ['ok', 'error', 'stopped'] },
  ),
  runsEnded: counter('spool_runs_ended_total', 'Ended Runs, by outcome.', {
    outcome: ['completed', 'failed', 'cancelled', 'expired'],
  }),
  runFailures: counter('spool_run_failures_total', 'Failed Runs, by error code.', { code: null }),
  runLosses: counter(
    'spool_run_losses_total',
    'Claims that ended before their Run, which returned to the queue, by reason.',
    {
      reason: ['lease_expired', 'retryable_failure', 'handed_over'],
    },
  ),
  leasesLost: counter('spool_leases_lost_total', 'Claims that this worker has lost, by reason.', {
    reason: ['gone', 'unsure'],
  }),

  stepSeconds: histogram('spool_step_duration_seconds', 'Duration in seconds of the steps of Runs.', LONG, {
    kind: ['model', 'tool'],
    outcome: ['ok', 'error', 'stopped'],
  }),
  toolCalls: counter('spool_tool_calls_total', 'Tool calls with a result, including calls that were not run.', {
    outcome: ['ok', 'error', 'refused', 'unknown'],
  }),
  providerRequests: counter('spool_provider_requests_total', 'Requests to model providers, by outcome.', {
    provider: PROVIDERS,
    outcome: ['ok', 'stopped', ...PROVIDER_FAILURES],
  }),
  providerSeconds: histogram(
    'spool_provider_request_duration_seconds',
    'Duration in seconds of requests to model providers, to the end of the response.',
    LONG,
    { provider: PROVIDERS },
  ),
  providerOddities: counter(
    'spool_provider_oddities_total',
    'Deviations of model providers from their protocol, and parts of requests that they rejected.',
    { provider: PROVIDERS, kind: ['frame', 'part', 'field', 'number', 'end', 'refused'] },
  ),
  tokens: counter('spool_tokens_total', 'Tokens of model calls; cached tokens are also part of the input.', {
    direction: ['input', 'output', 'cached'],
  }),

  poolTasks: counter('spool_pool_tasks_total', 'Calls of the task pool, by outcome.', {
    task: null,
    outcome: ['ok', 'cpu', 'time', 'memory', 'crashed', 'overloaded', 'aborted', 'input'],
  }),

  streamsOpen: gauge('spool_streams_open', 'Open event streams.'),
  streamEntries: counter('spool_stream_entries_total', 'Log entries sent to event streams.'),
  wakeups: counter('spool_wakeups_total', 'Wake-ups between processes, by direction.', {
    direction: ['sent', 'received', 'dropped'],
  }),

  lostFileReads: counter('spool_lost_file_reads_total', 'Reads of files whose bytes the blob store has lost.'),

  slots: gauge('spool_slots', 'Runs that this process can execute at the same time.'),
  slotsInUse: gauge('spool_slots_in_use', 'Runs that this process executes now.'),
  runMemoryBytes: gauge(
    'spool_run_memory_bytes',
    'Bytes of memory that the Runs of this process hold (`RUN_MEMORY_BYTES`).',
  ),
  runsWaitingForMemory: gauge('spool_runs_waiting_for_memory', 'Runs of this process that wait for memory.'),

  // Of the whole installation, read at the scrape (libs/run-queue/installation-metrics.ts).
  queueDepth: gauge('spool_queue_depth', 'Jobs waiting in the queue.'),
  workRows: gauge('spool_work_rows', 'Live Runs, by what they wait for.', {
    state: ['ready', 'leased', 'waiting', 'delayed', 'limited'],
  }),
  liveRuns: gauge('spool_live_runs', 'Live Runs, by status.', {
    status: ['queued', 'booting', 'running', 'waiting_input'],
  }),
  dueRows: gauge(
    'spool_due_rows',
    'Work items overdue by more than 2 s, without those that wait for a paused or unavailable queue.',
  ),
  oldestReadySeconds: gauge('spool_oldest_ready_seconds', 'Age in seconds of the Run that has been ready longest.'),
  workersAlive: gauge('spool_workers_alive', 'Workers with a heartbeat in the last 10 s.'),
  workerSlots: gauge('spool_worker_slots', 'Slots of all live workers.'),
  queuePaused: gauge('spool_queue_paused', '1 while an operator or a BullMQ tool has paused the queue.'),
  queueAway: gauge('spool_queue_away', '1 while the queue does not answer the dispatcher.'),

  databaseUp: gauge('spool_database_up', '1 if PostgreSQL answers this process.'),
  queueUp: gauge('spool_queue_up', '1 if the queue answers this process.'),
  wakeupBusUp: gauge('spool_wakeup_bus_up', '1 if this process can send and receive wake-ups.'),
  rateLimitStoreUp: gauge(
    'spool_rate_limit_store_up',
    '1 if this process counts requests together with the other processes.',
  ),
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

/** `stopped`: because the work had to stop, for whatever reason. */
type StepOutcome = 'ok' | 'error' | 'stopped';

/** Begins to measure a step; what it answers is told the outcome, and counts the first. */
export function countStep(kind: 'model' | 'tool'): (outcome: StepOutcome) => void {
  return once((outcome: StepOutcome, seconds) => metrics.stepSeconds.observe({ kind, outcome }, seconds));
}

/** The same of a boot. */
export function countBoot(): (outcome: StepOutcome) => void {
  return once((outcome: StepOutcome, seconds) => metrics.bootSeconds.observe({ outcome }, seconds));
}

/** The same of a provider's call. `outcome`: `ok`, `stopped` or the code of the Run's error. */
export function countProviderCall(provider: string): (outcome: string) => void {
  return once((outcome: string, seconds) => {
    metrics.providerRequests.inc({ provider, outcome });
    metrics.providerSeconds.observe({ provider }, seconds);
  });
}

function once<Outcome>(count: (outcome: Outcome, seconds: number) => void): (outcome: Outcome) => void {
  const startedAt = performance.now();
  let isOver = false;
  return (outcome) => {
    if (!isOver) count(outcome, (performance.now() - startedAt) / 1_000);
    isOver = true;
  };
}

/** What of `metrics` only some processes have: without them it is not said at all, rather than as 0. */
const OF_SOME = [
  ...([
    'slots',
    'slotsInUse',
    'runMemoryBytes',
    'runsWaitingForMemory',
    'queueDepth',
    'dueRows',
    'oldestReadySeconds',
    'workersAlive',
    'workerSlots',
  ] as const),
  ...(['queuePaused', 'queueAway', 'databaseUp', 'queueUp', 'wakeupBusUp', 'rateLimitStoreUp'] as const),
];
for (const name of OF_SOME) metrics[name].remove();

/** For how long one collector may keep a scrape, which has to be answered within a second. Milliseconds. */
const COLLECT_MS = 800;

const collectors = new Set<() => Promise<void> | void>();
let isCollecting = false;

/**
 * Has gauges set at each scrape; answers what ends that. A collector that fails or takes too long is passed over: it has to
 * remove what it cannot know.
 */
export function onScrape(collect: () => Promise<void> | void): () => void {
  collectors.add(collect);
  return () => void collectors.delete(collect);
}

/** Begins with what Node tells of the process. For a process that serves metrics; harmless when called again. */
export function collectProcessMetrics(): void {
  if (isCollecting) return;
  isCollecting = true;
  collectDefaultMetrics({ register: registry });
  metrics.buildInfo.set({ version: readVersion(), node: process.version }, 1);
}

/** All metrics in Prometheus' text format, within a second. Never rejects. */
export async function scrape(): Promise<{ contentType: string; text: string }> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => (timer = setTimeout(resolve, COLLECT_MS)));
  const collected = [...collectors].map(async (collect) => collect());
  await Promise.race([Promise.allSettled(collected), tooLate]);
  clearTimeout(timer);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/** The table of `metrics` as the documentation has it. */
export function describeMetrics(): { name: string; type: string; labels: string[] }[] {
  return Object.values(metrics).map((metric) => {
    const { name, labelNames, type } = metric as unknown as { name: string; labelNames: string[]; type: string };
    return { name, type, labels: [...labelNames] };
  });
}
