import { types } from 'node:util';

/** Of a program that cannot be started, and HTTP statuses of a service that is not there for us. */
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
const MAX_CAUSES = 10;

/** Whether a server cannot be used for a reason that stays until somebody changes it: its entry, or what is allowed. */
export function isMisconfigured(error: unknown): boolean {
  // Not by `instanceof`: under Jest those of Node have another class Error.
  for (let next = error, i = 0; types.isNativeError(next) && i < MAX_CAUSES; next = next.cause, i++) {
    // By their names: what comes here may be a copy without secrets.
    if (LASTING_NAMES.includes(next.name)) return true;
    if ('code' in next && LASTING.includes(next.code)) return true;
  }
  return false;
}
