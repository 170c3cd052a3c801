import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { AddressRefused, BodyTooLarge } from '#platform';
import { NoRoom } from '../harness.ts';
import { MessageTooComplex } from '../json-shape.ts';
import { MessageTooLarge } from './message-lines.ts';
import { ServerLimitExceeded } from './server-watch.ts';

/**
 * How a call can end without a result. `not_sent`: the server has certainly not started it. `lost`: the connection ended, and the
 * call may have taken effect. `timeout`: it took too long, and may have taken effect. `too_large`: the result is too large.
 * `no_room`: the worker has no memory for the result. `over_limit`: the server was killed because it used too much memory or CPU
 * time. `refused`: the server answered with an error. `invalid`: the answer is not a result.
 */
export type FailureKind = 'not_sent' | 'lost' | 'timeout' | Limit | 'refused' | 'invalid';
export type Limit = 'too_large' | 'no_room' | 'over_limit';

export class CallFailed extends Error {
  override name = 'CallFailed';

  constructor(
    readonly kind: FailureKind,
    cause?: unknown,
  ) {
    super(`The tool call failed: ${kind}.`, { cause });
  }
}

/** Network codes of failures before anything of the request was sent. */
const NOT_CONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Returns what an error of the SDK or of `fetch` means for a call on a connection that is still open. */
export function failureOf(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed(kindOf(error), error);
}

/** Returns the limit that a message or its server exceeded; null for another error. */
export function limitOf(error: unknown): Limit | null {
  if (error instanceof ServerLimitExceeded) return 'over_limit';
  if (error instanceof NoRoom) return 'no_room';
  const isTooLarge =
    error instanceof BodyTooLarge || error instanceof MessageTooLarge || error instanceof MessageTooComplex;
  return isTooLarge ? 'too_large' : null;
}

/** Error codes that the SDK itself creates. */
const OWN_CODES: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];

/** Returns whether the server answered with an error. For codes of the SDK, an HTTP status in the cause proves that. */
export function isRefusal(error: unknown): boolean {
  return error instanceof McpError && (error.cause !== undefined || !OWN_CODES.includes(error.code));
}

/** Whether a server refused a request with HTTP status 404: by the protocol its session is over. */
export function isSessionLost(error: unknown): boolean {
  return error instanceof McpError && error.cause instanceof StreamableHTTPError && error.cause.code === 404;
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof McpError) return 'refused';
  const limit = limitOf(error);
  if (limit !== null) return limit;
  if (error instanceof StreamableHTTPError) return kindOfStatus(error.code);
  if (error instanceof TypeError) return wasConnected(error) ? 'lost' : 'not_sent';
  // An answer that does not match the schemas of the SDK. Not always an Error.
  return Array.isArray((error as { issues?: unknown } | null)?.issues) ? 'invalid' : 'lost';
}

/** The protocol uses 404 for an expired session. After a restart, many servers answer 400 for an unknown session. */
function kindOfStatus(status: number | undefined): FailureKind {
  if (status === 400 || status === 404) return 'not_sent';
  return status !== undefined && status >= 300 && status < 500 ? 'refused' : 'lost';
}

function wasConnected({ cause }: Error): boolean {
  if (cause instanceof AddressRefused) return false;
  const { code, errors = [] } = (cause ?? {}) as { code?: string; errors?: { code?: string }[] };
  return ![code, ...errors.map((error) => error.code)].some((found) => NOT_CONNECTED.includes(found ?? ''));
}
