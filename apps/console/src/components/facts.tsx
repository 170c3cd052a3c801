import type { ReactNode } from 'react';
import { Paper, Text } from '@mantine/core';
import classes from './facts.module.css';

type Facts = Record<string, ReactNode>;

/** What there is to know of something, each with its name; those without a value are left out. */
export function FactList({ facts }: { facts: Facts }) {
  return (
    <dl className={classes.facts}>
      {Object.entries(facts).map(([name, value]) =>
        value === null || value === undefined ? null : (
          <div key={name}>
            <Text component="dt" size="xs" c="dimmed">
              {name}
            </Text>
            <Text component="dd" size="sm" className={classes.value}>
              {value}
            </Text>
          </div>
        ),
      )}
    </dl>
  );
}

/** As a part of a page, which `label` names. */
export function FactSection({ label, facts }: { label: string; facts: Facts }) {
  return (
    <Paper component="section" withBorder p="sm" aria-label={label}>
      <FactList facts={facts} />
    </Paper>
  );
}
