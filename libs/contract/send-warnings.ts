/**
 * The codes of `warnings` in the answer of send-events, for requests that were honoured in part. A test keeps docs/api/runs.md
 * equal. Codes may be added.
 */
export const SEND_WARNINGS = {
  run_already_ended: 'An interrupt names a Run that had already ended. Nothing was interrupted; the Run is unchanged.',
  message_queued:
    'A message was accepted while other Runs are active (`whenBusy: enqueue`). Its Run starts when they have ended.',
} as const;

export type SendWarningCode = keyof typeof SEND_WARNINGS;
