import type { Overview, Problem, QueueStatus } from '#contract';

/** A row of overview-problems.sql; `lost_files` counts files, not Runs. */
export interface FoundRuns {
  kind: 'lease_over' | 'lost_files' | 'backlog' | 'failed_runs' | 'waiting_runs';
  count: number;
  /** The number of them that can be retried. */
  retryable: number;
  since: string;
  runs: Problem['runs'];
}

/** The state that the problems are derived from. */
export interface Found {
  found: readonly FoundRuns[];
  queue: QueueStatus;
  database: Pick<Overview['database'], 'latencyMs'>;
  redis: Overview['redis'];
}

/** Thresholds in milliseconds: the first for a warning, the second for critical. */
const DATABASE_SLOW_MS = [250, 1_000] as const;
const BACKLOG_MS = [10_000, 60_000] as const;

const SEVERITIES = ['critical', 'warning', 'info'] as const satisfies Problem['severity'][];

type Finding = Omit<Problem, 'kind' | 'runs' | 'count' | 'since'> & Partial<Pick<Problem, 'count' | 'since' | 'runs'>>;

/** Returns the problems by severity, then causes before their effects. */
export function problemsOf(all: Found): Problem[] {
  const problems = (Object.keys(CHECKS) as Problem['kind'][]).flatMap((kind): Problem[] => {
    const finding = CHECKS[kind](all);
    return finding === null ? [] : [{ kind, count: null, since: null, runs: [], ...finding }];
  });
  return SEVERITIES.flatMap((severity) => problems.filter((problem) => problem.severity === severity));
}

const CHECKS: Record<Problem['kind'], (all: Found) => Finding | null> = {
  database_slow: ({ database: { latencyMs } }) => {
    if (latencyMs <= DATABASE_SLOW_MS[0]) return null;
    const severity = latencyMs > DATABASE_SLOW_MS[1] ? 'critical' : 'warning';
    const what = `An empty statement took ${Math.round(latencyMs)} ms.`;
    return { severity, message: `${what} Check the load of PostgreSQL and of this process.` };
  },

  queue_away: ({ queue: { awaySince, offered } }) => {
    if (awaySince === null && offered !== null) return null;
    const [who, severity] =
      awaySince === null ? ['This process', 'warning' as const] : ['The workers', 'critical' as const];
    const what = `${who} cannot reach the queue. Nothing is lost: Runs wait in PostgreSQL until it is back.`;
    return { severity, since: awaySince, message: `${what} Check Redis (QUEUE_URL) and the network.` };
  },

  redis_away: ({ redis, queue: { backend } }) => {
    if (redis?.status !== 'away') return null;
    const isQueue = backend === 'redis';
    const what = 'This process cannot reach Redis. Streams lag by up to 2 s';
    const more = isQueue ? ', and Runs might not start' : '';
    return {
      severity: isQueue ? 'critical' : 'warning',
      message: `${what}${more}. Start Redis, or check the network.`,
    };
  },

  no_worker: ({ queue: { workers, runs } }) => {
    if (workers.length > 0) return null;
    const isWaitedFor = runs.ready + runs.leased > 0;
    const message = 'No worker is alive, so no Run starts. Start a worker, and check the logs of stopped workers.';
    return { severity: isWaitedFor ? 'critical' : 'warning', message };
  },

  lease_over: (all) => {
    const found = runsOf(all, 'lease_over');
    if (found === null) return null;
    const what = `${countRuns(found.count, 'has', 'have')} lost the worker, and no worker has taken over.`;
    const how = 'Start a worker, which takes over within seconds, or cancel the Runs.';
    return { ...found, severity: 'critical', message: `${what} ${how}` };
  },

  lost_files: (all) => {
    const found = runsOf(all, 'lost_files');
    if (found === null) return null;
    const what = `The blob store does not have the bytes of ${found.count === 1 ? '1 file' : `${found.count} files`}.`;
    const how = 'Check BLOB_URL, and restore the bytes or delete the files. `spool verify --files` lists them.';
    return { ...found, severity: 'critical', message: `${what} ${how}` };
  },

  queue_paused: ({ queue: { pausedAt, pausedBy, runs } }) => {
    if (pausedAt === null) return null;
    const waiting = runs.ready > 0 ? ` ${countRuns(runs.ready, 'waits', 'wait')}.` : '';
    const message = pausedBy?.includes('bullmq')
      ? `A BullMQ tool (a script, Bull Board) has paused the queue; no Run starts.${waiting} Resume it, and find out who paused it.`
      : `The queue is paused; no Run starts.${waiting} Resume it when the reason for the pause is gone.`;
    return { severity: 'warning', since: pausedAt, message };
  },

  backlog: (all) => {
    const { oldestReadyMs, pausedAt } = all.queue;
    const found = runsOf(all, 'backlog');
    if (found === null || pausedAt !== null || oldestReadyMs === null || oldestReadyMs <= BACKLOG_MS[0]) return null;
    const severity = oldestReadyMs > BACKLOG_MS[1] ? 'critical' : 'warning';
    const what = `${countRuns(found.count, 'waits', 'wait')} for a worker, the oldest for ${seconds(oldestReadyMs)}.`;
    return {
      ...found,
      severity,
      message: `${what} Add workers or slots, or check what keeps the live workers busy.`,
    };
  },

  failed_runs: (all) => {
    const found = runsOf(all, 'failed_runs');
    const { retryable = 0 } = all.found.find(({ kind }) => kind === 'failed_runs') ?? {};
    if (found === null) return null;
    const what = `${countRuns(found.count, 'has', 'have')} failed, and no newer Run followed.`;
    const retry = 'Fix the cause, then retry';
    const how =
      retryable === found.count
        ? `${retry} ${retryable === 1 ? 'it' : 'them'}.`
        : retryable === 0
          ? 'A retry would fail again; fix the cause and send a new message.'
          : `${retry} the ${retryable} that can be retried; the others need a new message.`;
    return { ...found, severity: 'warning', message: `${what} ${how}` };
  },

  waiting_runs: (all) => {
    const found = runsOf(all, 'waiting_runs');
    if (found === null) return null;
    const message = `${countRuns(found.count, 'waits', 'wait')} for a person. Answer the requests, or leave them to the people asked.`;
    return { ...found, severity: 'info', message };
  },
};

function runsOf(
  { found }: Found,
  kind: FoundRuns['kind'],
): { count: number; since: string; runs: Problem['runs'] } | null {
  const row = found.find((each) => each.kind === kind);
  return row === undefined ? null : { count: row.count, since: row.since, runs: row.runs };
}

const countRuns = (count: number, one: string, many: string): string =>
  count === 1 ? `1 Run ${one}` : `${count} Runs ${many}`;

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;
