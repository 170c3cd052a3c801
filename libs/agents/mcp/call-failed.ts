import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { AddressRefused, BodyTooLarge } from '#platform';
import { NoRoom } from '../harness.ts';
import { MessageTooComplex } from '../json-shape.ts';
import { MessageTooLarge } from './message-lines.ts';
import { ServerLimitExceeded } from './server-watch.ts';

/**
 * How a call can end without a result. `not_sent`: the server has certainly not begun it. `lost`: the connection ended in
 * the middle, and it may have taken effect. `timeout`: it took too long, and may have taken effect. `too_large`: its result
 * is. `no_room`: the worker has no room in memory for its result. `over_limit`: its server used more memory or CPU time than it
 * may and was killed. `refused`: the server answered that it does not do it. `invalid`: what it answered is no result.
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

/** Before anything of the request is sent: no address, no connection. */
const NOT_CONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** What an error of the SDK or of `fetch` means for a call on a connection that still holds. */
export function failureOf(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed(kindOf(error), error);
}

/** The limit that a message met while it was read, or that its server exceeded; null for another error. */
export function limitOf(error: unknown): Limit | null {
  if (error instanceof ServerLimitExceeded) return 'over_limit';
  if (error instanceof NoRoom) return 'no_room';
  const isTooLarge =
    error instanceof BodyTooLarge || error instanceof MessageTooLarge || error instanceof MessageTooComplex;
  return isTooLarge ? 'too_large' : null;
}

/** Codes of errors that the SDK makes itself. */
const OWN_CODES: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];

/** Whether a server answered a request with an error. With the codes of the SDK only where its HTTP status shows that. */
export function isRefusal(error: unknown): boolean {
  return error instanceof McpError && (error.cause !== undefined || !OWN_CODES.includes(error.code));
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof McpError) return 'refused';
  const limit = limitOf(error);
  if (limit !== null) return limit;
  if (error instanceof StreamableHTTPError) return kindOfStatus(error.code);
  if (error instanceof TypeError) return wasConnected(error) ? 'lost' : 'not_sent';
  // What the schemas of the SDK say of an answer that is none; not always an Error.
  return Array.isArray((error as { issues?: unknown } | null)?.issues) ? 'invalid' : 'lost';
}

/** 404 is what the protocol answers when a session is over; many servers that know nothing of it after a restart say 400. */
function kindOfStatus(status: number | undefined): FailureKind {
  if (status === 400 || status === 404) return 'not_sent';
  return status !== undefined && status >= 300 && status < 500 ? 'refused' : 'lost';
}

function wasConnected({ cause }: Error): boolean {
  if (cause instanceof AddressRefused) return false;
  const { code, errors = [] } = (cause ?? {}) as { code?: string; errors?: { code?: string }[] };
  return ![code, ...errors.map((error) => error.code)].some((found) => NOT_CONNECTED.includes(found ?? ''));
}
