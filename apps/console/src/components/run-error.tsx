import { Text } from '@mantine/core';
import type { ManagedRun } from '#contract';

/** Shows why a Run failed, in a cell of a table. The title has the messages. */
export function RunError({ run: { error, cause } }: { run: Pick<ManagedRun, 'error' | 'cause'> }) {
  if (error === null) return '–';
  const title = cause?.message === undefined ? error.message : `${error.message} ${cause.message}`;
  return (
    <>
      <Text size="sm" c="red" title={title}>
        {error.code}
      </Text>
      <Text size="xs" c="dimmed" truncate title={title}>
        {cause?.summary ?? error.message}
      </Text>
    </>
  );
}
