import { HarnessError } from '#agents';
import { causeMessage, causeWord, type FailureCause } from '#domain';
import { chainedMessage, errorChain } from '#platform';

/**
 * Returns what is stored about a failed attempt: the report of the provider or the tool server, or else the error in this worker. If
 * the code of the failure says everything, as with a limit, returns the code, so that the cause of an earlier attempt is not kept.
 */
export function causeOf(error: unknown, workerId: string): FailureCause {
  if (error instanceof HarnessError && error.more.report !== undefined) return error.more.report;
  const thrown = error instanceof HarnessError ? error.cause : error;
  if (error instanceof HarnessError && thrown === undefined) return { source: 'run', name: error.code };
  // The innermost error with a name says most about the kind of failure.
  const named = errorChain(thrown).findLast(({ name }) => name !== 'Error');
  const type = causeWord(named?.name ?? 'Error');
  return {
    source: 'worker',
    name: causeWord(workerId),
    type,
    message: causeMessage(chainedMessage(thrown)) || undefined,
  };
}
