import { LONG, counter, gauge, histogram, timed } from '#platform';

/** The metrics of a worker. docs/operations/metrics.md describes them. */
export const metrics = {
  bootSeconds: histogram(
    'spool_run_boot_duration_seconds',
    'Duration in seconds from the claim of a Run to its first step, which loads version, transcript and tool servers.',
    LONG,
    { outcome: ['ok', 'error', 'stopped'] },
  ),
  leasesLost: counter('spool_leases_lost_total', 'Claims that this worker has lost, by reason.', {
    reason: ['gone', 'unsure'],
  }),
  stepSeconds: histogram('spool_step_duration_seconds', 'Duration in seconds of the steps of Runs.', LONG, {
    kind: ['model', 'tool'],
    outcome: ['ok', 'error', 'stopped'],
  }),
  slots: gauge('spool_slots', 'Runs that this process can execute at the same time.'),
  slotsInUse: gauge('spool_slots_in_use', 'Runs that this process executes now.'),
  runMemoryBytes: gauge(
    'spool_run_memory_bytes',
    'Bytes of memory that the Runs of this process hold (`RUN_MEMORY_BYTES`).',
  ),
  runsWaitingForMemory: gauge('spool_runs_waiting_for_memory', 'Runs of this process that wait for memory.'),
};

/** The outcome of a boot or a step. `stopped`: the work had to stop, for any reason. */
type StepOutcome = 'ok' | 'error' | 'stopped';

/** Starts to time a step. Call the returned function with the outcome; only the first call counts. */
export function countStep(kind: 'model' | 'tool'): (outcome: StepOutcome) => void {
  return timed((outcome: StepOutcome, seconds) => metrics.stepSeconds.observe({ kind, outcome }, seconds));
}

/** Starts to time a boot, like `countStep`. */
export function countBoot(): (outcome: StepOutcome) => void {
  return timed((outcome: StepOutcome, seconds) => metrics.bootSeconds.observe({ outcome }, seconds));
}
