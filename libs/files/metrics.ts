import { counter } from '#platform';

/** The metrics of files. docs/operations/metrics.md describes them. */
export const metrics = {
  lostFileReads: counter('spool_lost_file_reads_total', 'Reads of files whose bytes the blob store has lost.'),
};
