import { HarnessError } from '#agents';
import { causeMessage, causeWord, type FailureCause } from '#domain';
import { chainedMessage, errorChain } from '#platform';

/**
 * Returns what is stored about a failed attempt: the report of the provider or the tool server, or else the error in this worker.
 * Undefined if the code of the failure says everything, as with a limit.
 */
export function causeOf(error: unknown, workerId: string): FailureCause | undefined {
  if (error instanceof HarnessError && error.more.report !== undefined) return error.more.report;
  const thrown = error instanceof HarnessError ? error.cause : error;
  if (thrown === undefined) return undefined;
  // The innermost error says most about the kind of failure.
  const type = causeWord(errorChain(thrown).at(-1)?.name ?? 'unknown');
  return {
    source: 'worker',
    name: causeWord(workerId),
    type,
    message: causeMessage(chainedMessage(thrown)) || undefined,
  };
}
