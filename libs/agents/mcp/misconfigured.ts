import { types } from 'node:util';
import { errorChain } from '#platform';

/** Codes of a program that cannot be started, and HTTP statuses of a service that cannot be used. */
const LASTING: readonly unknown[] = ['ENOENT', 'EACCES', 401, 403, 404, 405];
const LASTING_NAMES = [
  'AddressRefused',
  'UnauthorizedError',
  'NotAllowed',
  'SandboxMissing',
  'ConfigError',
  'ListTooLarge',
  'NoToolList',
];
const NOT_FOUND = 404;

/** Returns whether a server stays unusable until somebody changes its entry or the allowances. */
export function isMisconfigured(error: unknown): boolean {
  let isOpening = false;
  for (const next of errorChain(error)) {
    if (next.name === 'ServerUnavailable') isOpening = true;
    // The answer to a request of a session that is over. The next connection has another.
    if (!isOpening && next.name === 'McpError' && codeOf(next.cause) === NOT_FOUND) return false;
    // By name, because the error may be a copy without secrets.
    if (LASTING_NAMES.includes(next.name)) return true;
    if (LASTING.includes(codeOf(next))) return true;
  }
  return false;
}

const codeOf = (error: unknown): unknown => (types.isNativeError(error) && 'code' in error ? error.code : undefined);
