import { Text } from '@mantine/core';
import type { ManagedRun } from '#contract';

/** Why a Run failed, in a cell of a table: the whole message as title. */
export function RunError({ error }: { error: ManagedRun['error'] }) {
  if (error === null) return '–';
  return (
    <>
      <Text size="sm" c="red" title={error.message}>
        {error.code}
      </Text>
      <Text size="xs" c="dimmed" truncate title={error.message}>
        {error.message}
      </Text>
    </>
  );
}
