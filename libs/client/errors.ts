import type { components } from './generated/api.ts';

type ApiErrorBody = components['schemas']['ErrorEnvelope']['error'];

/**
 * A code of the API (docs/api/errors.md), or one of this package: `no_response`: no response, or only a part of one.
 * `invalid_response`: a response that is not Spool's, such as the HTML of a proxy. `token_unavailable`: `getToken` failed.
 * `run_not_completed`: the Run failed, was cancelled or expired. `timeout`: `answer` has waited for `timeoutMs`.
 */
export type ErrorCode =
  | ApiErrorBody['code']
  | 'no_response'
  | 'invalid_response'
  | 'token_unavailable'
  | 'run_not_completed'
  | 'timeout';

export interface ErrorDetails {
  /** The status of the response, or of the error of `getToken`; absent if there was none. */
  status?: number | undefined;
  /** The cause, more precise than the code. For a Run that did not complete, the code of its error or its status. */
  reason?: string | undefined;
  /** Seconds to wait before the request is repeated. */
  retryAfter?: number | undefined;
  /** Identifies the HTTP request in the logs of the service. */
  requestId?: string | undefined;
  /** The decision that counts, with the reason `request_decided`. */
  decision?: ApiErrorBody['decision'];
  /** The Thread that has the `externalRef`, with the reason `reference_taken`. */
  threadId?: string | undefined;
  cause?: unknown;
}

/** Every error of this package, except those for wrong arguments. */
export class SpoolError extends Error {
  override readonly name = 'SpoolError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    private readonly details: ErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
  }

  get status(): number | undefined {
    return this.details.status;
  }

  get reason(): string | undefined {
    return this.details.reason;
  }

  get retryAfter(): number | undefined {
    return this.details.retryAfter;
  }

  get requestId(): string | undefined {
    return this.details.requestId;
  }

  get decision(): ApiErrorBody['decision'] {
    return this.details.decision;
  }

  get threadId(): string | undefined {
    return this.details.threadId;
  }

  /** Whether the same request can succeed later. */
  get isRetryable(): boolean {
    const { status = 0, retryAfter } = this.details;
    if (status >= 500 || status === 429 || retryAfter !== undefined) return true;
    // An error of getToken without a status may have been a lost connection.
    const isRefusal = this.code === 'token_unavailable' && status >= 400 && status !== 408;
    return TRANSIENT.has(this.code) && !isRefusal;
  }
}

const TRANSIENT: ReadonlySet<ErrorCode> = new Set(['no_response', 'token_unavailable']);

/** Returns the error of a response that is not 2xx. */
export async function toError(response: Response): Promise<SpoolError> {
  const { status, headers } = response;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const details: ErrorDetails = {
    status,
    reason: headers.get('spool-error-reason') ?? undefined,
    retryAfter: Number.isFinite(seconds) ? seconds : undefined,
    requestId: headers.get('x-request-id') ?? undefined,
    threadId: headers.get('spool-thread-id') ?? undefined,
  };
  const body = await response.text().catch(() => '');
  const error = parseError(body);
  if (error === null) {
    return new SpoolError('invalid_response', `The response has status ${status} and is not Spool's.`, details);
  }
  const { code, message, reason, decision, threadId } = error;
  details.reason ??= reason;
  details.threadId ??= threadId;
  return new SpoolError(code, message, { ...details, decision });
}

/** Returns the error of an envelope, or null for any other text. */
export function parseError(text: string): ApiErrorBody | null {
  try {
    const { error } = JSON.parse(text) as { error?: ApiErrorBody };
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : null;
  } catch {
    return null;
  }
}
