import type { FailureCause } from './failure-cause.ts';

/**
 * The closed catalogue of Run failures (docs/spec/decisions.md#run-errors). Callers see `message`: never a stack trace,
 * path, host or secret. Operators see `remedy`, also in docs/run-errors.md; a test keeps both equal.
 */
export const RUN_ERRORS = {
  provider_unavailable: {
    message: 'The model provider did not answer.',
    retryable: true,
    remedy: 'Retry the Run; if it fails again, check the provider’s status.',
  },
  provider_rate_limited: {
    message: 'The model provider’s rate limit was reached.',
    retryable: true,
    remedy: 'Retry later, or raise the limit at the provider.',
  },
  provider_rejected: {
    message: 'The model provider refused the request.',
    retryable: false,
    remedy:
      'Check the agent’s model, base URL and settings. For a provider at a private address, check ALLOWED_PRIVATE_ADDRESSES.',
  },
  provider_quota_exhausted: {
    message: 'The account at the model provider has used up its quota.',
    retryable: false,
    remedy: 'Raise the quota or the credit at the provider, then send a new message.',
  },
  provider_auth: {
    message: 'The model provider refused the agent’s credential.',
    retryable: false,
    remedy: 'Renew the credential that the agent refers to.',
  },
  content_filtered: {
    message: 'The model provider’s filter refused the answer.',
    retryable: false,
    remedy: 'Rephrase the message; the provider decides what it filters.',
  },
  context_too_long: {
    message: 'The conversation does not fit the model’s context window.',
    retryable: false,
    remedy: 'Start a new Thread, or give the agent a model with a larger window.',
  },
  tool_server_unavailable: {
    message: 'A tool server that the agent needs did not answer.',
    retryable: true,
    remedy: 'Retry the Run; if it fails again, check the tool server.',
  },
  tool_server_misconfigured: {
    message: 'A tool server cannot be used as the agent configures it.',
    retryable: false,
    remedy:
      'Check its command, URL and credential in the manifest, and ALLOWED_PRIVATE_ADDRESSES. `spool run show` has the cause.',
  },
  step_limit_reached: {
    message: 'The Run reached the agent’s step limit.',
    retryable: false,
    remedy: 'Raise `limits.maxSteps` in the agent, or ask for less in one message.',
  },
  token_limit_reached: {
    message: 'The Run reached the agent’s token limit.',
    retryable: false,
    remedy: 'Raise `limits.maxTokens` in the agent, or ask for less in one message.',
  },
  cost_limit_reached: {
    message: 'The Run reached the agent’s cost limit.',
    retryable: false,
    remedy: 'Raise `limits.maxCost` in the agent, or ask for less in one message.',
  },
  worker_lost: {
    message: 'Several workers in a row were lost while they ran this Run.',
    retryable: true,
    remedy: 'Retry the Run; if it fails again, find out what ends the workers (memory, crashes).',
  },
  harness_crashed: {
    message: 'The agent’s harness ended unexpectedly.',
    retryable: true,
    remedy: 'Retry the Run; if it fails again, see its cause (`spool run show`).',
  },
  output_too_large: {
    message: 'The Run produced more output than can be stored.',
    retryable: false,
    remedy: 'Ask for a smaller answer, or have the agent write a file.',
  },
  storage_unavailable: {
    message: 'A file that the Run made could not be stored.',
    retryable: true,
    remedy: 'Retry the Run; if it fails again, check the blob store (disk full, no response).',
  },
  thread_unreadable: {
    message: 'The Thread has an event that this version cannot read.',
    retryable: false,
    remedy: 'Upgrade all workers to the newest release; if it fails again, run `spool verify`.',
  },
  internal: {
    message: 'The Run failed because of an internal error.',
    retryable: false,
    remedy: 'See its cause (`spool run show`), and look for the run id in the worker’s log.',
  },
} as const satisfies Record<string, { message: string; retryable: boolean; remedy: string }>;

export type RunErrorCode = keyof typeof RUN_ERRORS;

/** Returns the error of an attempt. Its message also has the provider's HTTP status, and nothing else of the cause. */
export function failedBy(code: RunErrorCode, cause: FailureCause | undefined): RunError {
  const hasAnswered = code === 'provider_unavailable' && cause?.source === 'provider' && cause.status !== undefined;
  return runError(code, hasAnswered ? { message: `The model provider answered ${cause.status}.` } : {});
}

/** Returns what to do about an error; null for the code of a later release. */
export function remedyOf(code: string): string | null {
  return Object.hasOwn(RUN_ERRORS, code) ? RUN_ERRORS[code as RunErrorCode].remedy : null;
}

/** The failure of a Run, as `RunSummary.error` shows it. */
export interface RunError {
  code: RunErrorCode;
  message: string;
  retryable: boolean;
}

/** Returns the error of the catalogue. `more` makes it more exact for the case. */
export function runError(code: RunErrorCode, more: Partial<Pick<RunError, 'message' | 'retryable'>> = {}): RunError {
  const { message, retryable } = RUN_ERRORS[code];
  return { code, message, retryable, ...more };
}
