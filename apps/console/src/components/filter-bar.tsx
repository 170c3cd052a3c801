import type { ReactNode } from 'react';
import { Button, Group } from '@mantine/core';

interface Props<Name extends string> {
  /** Such as `Filter Runs`. */
  label: string;
  filter: Record<Name, string>;
  change: (changed: Partial<Record<Name, string>>) => void;
  children: ReactNode;
}

/** Whether anything is filtered by. */
export const isFiltered = (filter: Record<string, string>): boolean => Object.values(filter).some((value) => value);

/** The filters above a list, and the way to be without them. */
export function FilterBar<Name extends string>({ label, filter, change, children }: Props<Name>) {
  const none = Object.fromEntries(Object.keys(filter).map((name) => [name, ''])) as Record<Name, string>;
  return (
    <Group component="search" aria-label={label} align="flex-end" gap="sm" mb="md">
      {children}
      {isFiltered(filter) && (
        <Button variant="subtle" onClick={() => change(none)}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}
