import { useId, useState, type ReactNode } from 'react';
import { Button, Group } from '@mantine/core';
import { IconFilter } from '@tabler/icons-react';
import classes from './filter-bar.module.css';

interface Props<Name extends string> {
  /** The accessible name, such as `Filter Runs`. */
  label: string;
  filter: Record<Name, string>;
  change: (changed: Partial<Record<Name, string>>) => void;
  /** The filter that stays visible on a phone. A button opens the others there. */
  lead?: ReactNode;
  children: ReactNode;
}

const countOf = (filter: Record<string, string>): number => Object.values(filter).filter(Boolean).length;

/** Returns whether any filter is set. */
export const isFiltered = (filter: Record<string, string>): boolean => countOf(filter) > 0;

/** The filters above a list, and the button that clears them. */
export function FilterBar<Name extends string>({ label, filter, change, lead, children }: Props<Name>) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const none = Object.fromEntries(Object.keys(filter).map((name) => [name, ''])) as Record<Name, string>;
  const count = countOf(filter);
  return (
    <Group component="search" aria-label={label} align="flex-end" gap="sm" mb="md">
      {lead}
      <Button
        variant="default"
        hiddenFrom="sm"
        leftSection={<IconFilter size={14} />}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {count === 0 ? 'Filters' : `Filters (${count})`}
      </Button>
      <div id={id} className={classes.filters} data-open={isOpen || undefined}>
        {children}
      </div>
      {count > 0 && (
        <Button variant="subtle" onClick={() => change(none)}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}
