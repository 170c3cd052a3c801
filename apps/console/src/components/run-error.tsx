import { Text } from '@mantine/core';
import type { ManagedRun } from '#contract';
import { hasEnded } from './status-table.ts';

type FailedRun = Pick<ManagedRun, 'status' | 'error' | 'cause'>;

/** Returns whether a Run failed, or is retried after a failure. */
export const hasRunError = ({ status, error, cause }: FailedRun): boolean =>
  error !== null || (Boolean(cause) && !hasEnded(status));

/** Shows why a Run failed or is retried, in a cell of a table. The title has the messages. */
export function RunError({ run: { error, cause } }: { run: FailedRun }) {
  const title = [error?.message, cause?.message].filter(Boolean).join(' ');
  return (
    <>
      <Text size="sm" c={error === null ? 'orange' : 'red'} title={title}>
        {error?.code ?? `Attempt ${cause?.attempt ?? ''} failed`}
      </Text>
      <Text size="xs" c="dimmed" truncate title={title}>
        {/* For a limit of the Run, the summary of the cause is the error code. */}
        {cause?.summary === error?.code ? error?.message : (cause?.summary ?? error?.message)}
      </Text>
    </>
  );
}
