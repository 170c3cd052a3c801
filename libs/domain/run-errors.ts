/**
 * The closed catalogue of Run failures (docs/spec/decisions.md#run-errors). `message` is what callers see: never a
 * stack trace, path, host or secret. `remedy` is for the docs (docs/run-errors.md, kept equal by a test).
 */
export const RUN_ERRORS = {
  provider_unavailable: {
    message: 'The model provider did not answer.',
    retryable: true,
    remedy: 'Retry the Run; if it goes on, look at the provider’s status.',
  },
  provider_rate_limited: {
    message: 'The model provider refused the call for its rate limit.',
    retryable: true,
    remedy: 'Retry later, or raise the limit at the provider.',
  },
  provider_rejected: {
    message: 'The model provider refused the request.',
    retryable: false,
    remedy:
      'Check the agent’s model, base URL and settings against what the provider accepts, and ALLOWED_PRIVATE_ADDRESSES where it is at a private address.',
  },
  provider_quota_exhausted: {
    message: 'The account at the model provider has used up its quota.',
    retryable: false,
    remedy: 'Raise the quota or the credit at the provider, then retry with a new message.',
  },
  provider_auth: {
    message: 'The model provider refused the agent’s credential.',
    retryable: false,
    remedy: 'Renew the credential that the agent refers to.',
  },
  content_filtered: {
    message: 'The model provider’s filter refused the answer.',
    retryable: false,
    remedy: 'Ask differently; what is filtered is the provider’s rule.',
  },
  context_too_long: {
    message: 'The conversation does not fit the model’s context window.',
    retryable: false,
    remedy: 'Start a new Thread, or give the agent a model with a larger window.',
  },
  tool_server_unavailable: {
    message: 'A tool server that the agent needs did not answer.',
    retryable: true,
    remedy: 'Retry the Run; if it goes on, look at the tool server.',
  },
  tool_server_misconfigured: {
    message: 'A tool server cannot be used as the agent names it.',
    retryable: false,
    remedy:
      'Check its command, URL and credential in the manifest, and ALLOWED_PRIVATE_ADDRESSES; the worker’s log has the cause under the run id.',
  },
  step_limit_reached: {
    message: 'The Run reached the agent’s limit of steps.',
    retryable: false,
    remedy: 'Raise the limit of steps in the agent, or ask for less at once.',
  },
  token_limit_reached: {
    message: 'The Run reached the agent’s limit of tokens.',
    retryable: false,
    remedy: 'Raise `limits.maxTokens` in the agent, or ask for less at once.',
  },
  cost_limit_reached: {
    message: 'The Run reached the agent’s limit of costs.',
    retryable: false,
    remedy: 'Raise `limits.maxCost` in the agent, or ask for less at once.',
  },
  worker_lost: {
    message: 'The workers that ran this Run were lost, several in a row.',
    retryable: true,
    remedy: 'Retry the Run; if it goes on, look for what kills the workers (memory, crashes).',
  },
  harness_crashed: {
    message: 'The agent’s harness ended unexpectedly.',
    retryable: true,
    remedy: 'Retry the Run; if it goes on, the worker’s log has the cause under the run id.',
  },
  output_too_large: {
    message: 'The Run produced more output than is stored.',
    retryable: false,
    remedy: 'Ask for a smaller answer, or have the agent write a file.',
  },
  storage_unavailable: {
    message: 'A file that the Run made could not be stored.',
    retryable: true,
    remedy: 'Retry the Run; if it goes on, look at the blob storage (disk full, no answer).',
  },
  thread_unreadable: {
    message: 'The Thread has an event that this version cannot read.',
    retryable: false,
    remedy:
      'Bring all workers to the newest release; if it goes on, `spool verify` names what is wrong with the Thread.',
  },
  internal: {
    message: 'The Run failed for an internal reason.',
    retryable: false,
    remedy: 'The worker’s log has the cause under the run id.',
  },
} as const satisfies Record<string, { message: string; retryable: boolean; remedy: string }>;

export type RunErrorCode = keyof typeof RUN_ERRORS;

/** Why a Run failed, as `RunSummary.error` shows it. */
export interface RunError {
  code: RunErrorCode;
  message: string;
  retryable: boolean;
}

/** The catalogue's error; `message` and `retryable` may be made more exact by the one who knows the case. */
export function runError(code: RunErrorCode, more: Partial<Pick<RunError, 'message' | 'retryable'>> = {}): RunError {
  const { message, retryable } = RUN_ERRORS[code];
  return { code, message, retryable, ...more };
}
