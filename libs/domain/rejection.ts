/**
 * The reasons to reject a command, by code (docs/spec/decisions.md#state-conflicts). Messages are for the caller's
 * engineers. HTTP statuses belong to apps/api.
 */
export const REJECTIONS = {
  thread_missing: 'The Thread does not exist.',
  thread_exists: 'The Thread already exists.',
  thread_archived: 'The Thread is archived; unarchive it first.',
  thread_terminated: 'The Thread is terminated.',
  thread_busy: 'A Run of the Thread is active; wait for its end, or interrupt it.',
  too_many_queued_runs: 'Too many Runs of the Thread are queued; wait until some have ended.',
  no_active_run: 'The Thread has no active Run.',
  run_not_live: 'The Run has ended.',
  run_not_retryable: 'The Run cannot be retried.',
  request_not_pending:
    'The confirmation request is unknown or no longer pending: its Run ended, it was withdrawn, or this batch decides it twice.',
  stale_dispatch: 'The Run is not queued under this dispatch.',
  stale_attempt: 'The Run is not claimed under this attempt.',
  illegal_transition: 'The Run cannot make this transition.',
} as const;

/** Why `run_not_retryable` rejects an earlier Run. */
export const NEWER_RUN = 'The Thread has a newer Run.';

export type RejectionCode = keyof typeof REJECTIONS;

export interface Rejection {
  rejected: RejectionCode;
  message: string;
  /** `request_not_pending`: the request. The state does not tell whether it was decided, because it lacks ended waits. */
  requestId?: string;
}

/** Returns a rejection. `reason` explains this case, for a code with several causes. */
export function reject(code: RejectionCode, reason?: string): Rejection {
  return { rejected: code, message: [REJECTIONS[code], ...(reason === undefined ? [] : [reason])].join(' ') };
}

export function isRejection(decision: object): decision is Rejection {
  return 'rejected' in decision;
}
