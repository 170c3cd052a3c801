import { FAST, counter, gauge, histogram } from '#platform';

/** The metrics of the queue, and of the whole installation. docs/operations/metrics.md describes them. */
export const metrics = {
  enqueues: counter('spool_offers_total', 'Attempts to add the job of a Run to the queue.', {
    path: ['fast', 'dispatcher'],
    outcome: ['sent', 'dropped', 'failed'],
  }),
  enqueueSeconds: histogram(
    'spool_offer_latency_seconds',
    'Delay in seconds from a commit until the queue has the job, on the fast path.',
    FAST,
  ),
  queueDepth: gauge('spool_queue_depth', 'Jobs waiting in the queue.'),
  workItems: gauge('spool_work_rows', 'Live Runs, by what they wait for.', {
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
  queueUnavailable: gauge('spool_queue_away', '1 while the queue does not answer the dispatcher.'),
  queueUp: gauge('spool_queue_up', '1 if the queue answers this process.'),
};
