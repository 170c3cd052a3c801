import { counter, gauge } from '#platform';

/** The metrics of wake-ups and streams. docs/operations/metrics.md describes them. */
export const metrics = {
  streamEntries: counter('spool_stream_entries_total', 'Log entries sent to event streams.'),
  wakeups: counter('spool_wakeups_total', 'Wake-ups between processes, by direction.', {
    direction: ['sent', 'received', 'dropped'],
  }),
  wakeupBusUp: gauge('spool_wakeup_bus_up', '1 if this process can send and receive wake-ups.'),
};
