import type { Problem } from '#contract';

export const PROBLEM_TITLES: Record<Problem['kind'], string> = {
  database_slow: 'PostgreSQL is slow',
  queue_away: 'The queue does not respond',
  redis_away: 'Redis does not respond',
  queue_paused: 'The queue is paused',
  no_worker: 'No worker is alive',
  lease_over: 'Runs have lost their worker',
  lost_files: 'Files have lost their bytes',
  backlog: 'Runs wait for a worker',
  provider_failing: 'Runs wait for a model provider',
  failed_runs: 'Runs failed',
  waiting_runs: 'Runs wait for a person',
};

/** Returns a key that stays the same while the problem lasts. */
export const keyOf = ({ id, kind, message }: Problem): string => id ?? `${kind} ${message.replace(/^\d+ /, '')}`;

/** Returns the id of the problem's element, for links to it. */
export const anchorOf = (problem: Problem): string => `problem-${keyOf(problem).replaceAll(/[^\w-]+/g, '-')}`;
