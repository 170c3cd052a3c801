import type { ReactNode } from 'react';
import { Badge } from '@mantine/core';
import classes from './parts.module.css';

/** A small label of a state. `color` is one of the theme. */
export function StatusBadge({ color, children }: { color: string; children: ReactNode }) {
  return (
    <Badge color={color} variant="light" size="sm" radius="sm" tt="none" fw={600} className={classes.badge}>
      {children}
    </Badge>
  );
}
