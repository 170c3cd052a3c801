import { Text } from '@mantine/core';
import type { ManagedRun } from '#contract';
import { hasEnded } from './status-table.ts';

/** Shows why a Run failed or is retried, in a cell of a table. The title has the messages. */
export function RunError({ run: { status, error, cause } }: { run: Pick<ManagedRun, 'status' | 'error' | 'cause'> }) {
  if (error === null && (!cause || hasEnded(status))) return '–';
  const title = [error?.message, cause?.message].filter(Boolean).join(' ');
  return (
    <>
      <Text size="sm" c={error === null ? 'orange' : 'red'} title={title}>
        {error?.code ?? `Attempt ${cause?.attempt ?? ''} failed`}
      </Text>
      <Text size="xs" c="dimmed" truncate title={title}>
        {/* The summary of a limit of the Run is its code. */}
        {cause?.summary === error?.code ? error?.message : (cause?.summary ?? error?.message)}
      </Text>
    </>
  );
}
