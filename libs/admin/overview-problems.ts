import type { Overview, Problem, QueueStatus } from '#contract';
import { summarizeCause, type FailureCause } from '#domain';

/** A row of overview-problems.sql; `lost_files` counts files, not Runs. `failed_runs` has a row for each Agent, code and cause, `provider_failing` for each provider. */
export interface FoundRuns {
  kind: 'lease_over' | 'lost_files' | 'backlog' | 'provider_failing' | 'failed_runs' | 'waiting_runs';
  count: number;
  since: string;
  runs: Problem['runs'];
  agentId: string | null;
  agentName: string | null;
  code: string | null;
  cause: FailureCause | null;
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

type Finding = Pick<Problem, 'severity' | 'message'> &
  Partial<Pick<Problem, 'id' | 'count' | 'since' | 'runs' | 'agentId' | 'errorCode' | 'cause'>>;

/** Returns the problems by severity, then causes before their effects. */
export function problemsOf(all: Found): Problem[] {
  const problems = (Object.keys(CHECKS) as Problem['kind'][]).flatMap((kind): Problem[] => {
    const findings = [CHECKS[kind](all) ?? []].flat();
    return findings.map((finding) => ({ kind, id: kind, count: null, since: null, runs: [], ...finding }));
  });
  return SEVERITIES.flatMap((severity) => problems.filter((problem) => problem.severity === severity));
}

/** The most groups of failed Runs that are separate problems. */
const MAX_GROUPS = 5;

const CHECKS: Record<Problem['kind'], (all: Found) => Finding | Finding[] | null> = {
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

  provider_failing: ({ found }) =>
    // Several circuits can fail for one cause: each key of a provider has its own.
    joinedBy(
      found.filter(({ kind }) => kind === 'provider_failing'),
      whyOf,
    ).map((row) => {
      const what = `${countRuns(row.count, 'waits', 'wait')} for a model provider: ${whyOf(row)}.`;
      const how =
        'Waiting Runs continue when it answers. Until then, one calls it every 3 s, or later if it asks for that. Check its status.';
      const { count, since, runs } = row;
      const id = `provider_failing ${whyOf(row)}`;
      return { id, severity: 'warning', count, since, runs, cause: causeOf(row), message: `${what} ${how}` };
    }),

  failed_runs: ({ found }) => {
    const groups = groupFailed(found.filter(({ kind }) => kind === 'failed_runs'));
    const shown = groups.length > MAX_GROUPS ? groups.slice(0, MAX_GROUPS - 1) : groups;
    const rest = groups.slice(shown.length);
    const findings = shown.map((group) => ({
      ...failedFinding(group, ` of ${group.agentName} failed: ${whyOf(group)}.`),
      ...{ id: `failed_runs ${group.agentId} ${whyOf(group)}` },
      ...{ agentId: group.agentId, errorCode: group.code, cause: causeOf(group) },
    }));
    if (rest.length === 0) return findings;
    const others = failedFinding(joined(rest), ` of ${rest.length} other Agents or causes failed.`);
    return [...findings, { ...others, id: 'failed_runs of others' }];
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

type FailedRuns = Omit<FoundRuns, 'kind'>;

const MAX_RUNS = 5;

/** Returns the failed Runs by Agent and cause, the most first. Causes with the same summary are one. */
function groupFailed(rows: readonly FailedRuns[]): FailedRuns[] {
  const groups = joinedBy(rows, (row) => JSON.stringify([row.agentId, row.code, whyOf(row)]));
  return groups.sort((a, b) => b.count - a.count || (a.since < b.since ? -1 : 1));
}

function joinedBy(rows: readonly FailedRuns[], keyOf: (row: FailedRuns) => string): FailedRuns[] {
  const groups = new Map<string, FailedRuns[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  return [...groups.values()].map(joined);
}

function joined(rows: readonly FailedRuns[]): FailedRuns {
  const count = rows.reduce((total, row) => total + row.count, 0);
  const [since = ''] = rows.map((row) => row.since).sort();
  const runs = rows.flatMap((row) => row.runs).slice(0, MAX_RUNS);
  return { ...rows[0]!, count, since, runs };
}

/** Returns the code of the error with its cause. Errors with different codes can have one cause, such as `HTTP 429`. */
const whyOf = ({ code, cause }: FailedRuns): string =>
  cause === null || cause.source === 'run' ? (code ?? 'unknown') : `${code}, ${summarizeCause(cause)}`;

const causeOf = ({ cause }: FailedRuns): string | null => cause && summarizeCause(cause);

/** @param what the part of the message that follows "14 Runs" */
function failedFinding({ count, since, runs }: FailedRuns, what: string): Finding {
  const message =
    count === 1 ? `1 Run${what} Fix the cause, then retry it.` : `${count} Runs${what} Fix the cause, then retry them.`;
  return { severity: 'warning', count, since, runs, message };
}

const countRuns = (count: number, one: string, many: string): string =>
  count === 1 ? `1 Run ${one}` : `${count} Runs ${many}`;

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;
