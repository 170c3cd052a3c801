import type { Overview, Problem, QueueStatus } from '#contract';

/** A row of overview-problems.sql; `lost_files` counts files, not Runs. */
export interface FoundRuns {
  kind: 'lease_over' | 'lost_files' | 'backlog' | 'failed_runs' | 'waiting_runs';
  count: number;
  /** How many of them `retry` works for. */
  retryable: number;
  since: string;
  runs: Problem['runs'];
}

/** What an answer says how things are with. */
export interface Found {
  found: readonly FoundRuns[];
  queue: QueueStatus;
  database: Pick<Overview['database'], 'latencyMs'>;
  redis: Overview['redis'];
}

/** From here on it is told, and from the second on it is the worst kind. Milliseconds. */
const DATABASE_SLOW_MS = [250, 1_000] as const;
const BACKLOG_MS = [10_000, 60_000] as const;

const SEVERITIES = ['critical', 'warning', 'info'] as const satisfies Problem['severity'][];

type Told = Omit<Problem, 'kind' | 'runs' | 'count' | 'since'> & Partial<Pick<Problem, 'count' | 'since' | 'runs'>>;

/** What is wrong, the worst first; of the same severity what explains others comes before them. */
export function problemsOf(all: Found): Problem[] {
  const problems = (Object.keys(CHECKS) as Problem['kind'][]).flatMap((kind): Problem[] => {
    const told = CHECKS[kind](all);
    return told === null ? [] : [{ kind, count: null, since: null, runs: [], ...told }];
  });
  return SEVERITIES.flatMap((severity) => problems.filter((problem) => problem.severity === severity));
}

const CHECKS: Record<Problem['kind'], (all: Found) => Told | null> = {
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
    const told = runsOf(all, 'lease_over');
    if (told === null) return null;
    const what = `${countRuns(told.count, 'has', 'have')} lost the worker, and no worker has taken over.`;
    const how = 'Start a worker, which takes over within seconds, or cancel the Runs.';
    return { ...told, severity: 'critical', message: `${what} ${how}` };
  },

  lost_files: (all) => {
    const told = runsOf(all, 'lost_files');
    if (told === null) return null;
    const what = `The blob store does not have the bytes of ${told.count === 1 ? '1 file' : `${told.count} files`}.`;
    const how = 'Check BLOB_URL, and restore the bytes or delete the files. `spool verify --files` lists them.';
    return { ...told, severity: 'critical', message: `${what} ${how}` };
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
    const told = runsOf(all, 'backlog');
    if (told === null || pausedAt !== null || oldestReadyMs === null || oldestReadyMs <= BACKLOG_MS[0]) return null;
    const severity = oldestReadyMs > BACKLOG_MS[1] ? 'critical' : 'warning';
    const what = `${countRuns(told.count, 'waits', 'wait')} for a worker, the oldest for ${seconds(oldestReadyMs)}.`;
    return {
      ...told,
      severity,
      message: `${what} Add workers or slots, or check what keeps the live workers busy.`,
    };
  },

  failed_runs: (all) => {
    const told = runsOf(all, 'failed_runs');
    const { retryable = 0 } = all.found.find(({ kind }) => kind === 'failed_runs') ?? {};
    if (told === null) return null;
    const what = `${countRuns(told.count, 'has', 'have')} failed, and no newer Run followed.`;
    const retry = 'Fix the cause, then retry';
    const how =
      retryable === told.count
        ? `${retry} ${retryable === 1 ? 'it' : 'them'}.`
        : retryable === 0
          ? 'A retry would fail again; fix the cause and send a new message.'
          : `${retry} the ${retryable} that can be retried; the others need a new message.`;
    return { ...told, severity: 'warning', message: `${what} ${how}` };
  },

  waiting_runs: (all) => {
    const told = runsOf(all, 'waiting_runs');
    if (told === null) return null;
    const message = `${countRuns(told.count, 'waits', 'wait')} for a person. Answer the requests, or leave them to the people asked.`;
    return { ...told, severity: 'info', message };
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
