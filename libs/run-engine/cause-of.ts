import { types } from 'node:util';
import { HarnessError } from '#agents';
import { causeMessage, causeWord, type FailureCause } from '#domain';

/**
 * Returns what is stored about a failed attempt: the report of the provider or the tool server, or else the error in this worker.
 * Undefined if the code of the failure says everything, as with a limit.
 */
export function causeOf(error: unknown, workerId: string): FailureCause | undefined {
  if (error instanceof HarnessError && error.more.report !== undefined) return error.more.report;
  const thrown = error instanceof HarnessError ? error.cause : error;
  if (thrown === undefined) return undefined;
  const { name, message } = types.isNativeError(thrown) ? thrown : { name: 'unknown', message: '' };
  return { source: 'worker', name: causeWord(workerId), type: causeWord(name), message: causeMessage(message) };
}
