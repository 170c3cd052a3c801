import { counter } from '#platform';

/** The metrics of the task pool. docs/operations/metrics.md describes them. */
export const metrics = {
  poolTasks: counter('spool_pool_tasks_total', 'Calls of the task pool, by outcome.', {
    task: null,
    outcome: ['ok', 'cpu', 'time', 'memory', 'crashed', 'overloaded', 'aborted', 'input'],
  }),
};
