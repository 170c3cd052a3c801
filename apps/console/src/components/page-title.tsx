import type { ReactNode } from 'react';
import { Group, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';

/** The heading of a page, also that of its tab; what can be done on the page stands beside it. */
export function PageTitle({ title, children }: { title: string; children?: ReactNode }) {
  useDocumentTitle(`${title} · Spool`);
  return (
    <Group justify="space-between" mb="md" wrap="wrap">
      <Title order={1} size="h2">
        {title}
      </Title>
      {children}
    </Group>
  );
}
