import type { BulkAction } from '#contract';

/** The words for each bulk action. */
export const BULK_WORDS: Record<BulkAction['action'], { verb: string; done: string; name: string }> = {
  cancel: { verb: 'Cancel', done: 'cancelled', name: 'Cancellation' },
  retry: { verb: 'Retry', done: 'retried', name: 'Retry' },
};
