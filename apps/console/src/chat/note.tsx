import type { ReactNode } from 'react';
import { Center, Group, Paper, Stack, Text, Title } from '@mantine/core';

/** Something in the middle of an empty page. */
export function Whole({ children }: { children: ReactNode }) {
  return (
    <Center component="main" mih="100dvh" p="md">
      {children}
    </Center>
  );
}

/** A page that says why there is no chat, with what can be done. */
export function Note({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <Whole>
      <Paper withBorder p="xl" maw={460}>
        <Stack>
          <Title order={1} size="h2">
            {title}
          </Title>
          <Text size="sm">{children}</Text>
          {action && <Group gap="xs">{action}</Group>}
        </Stack>
      </Paper>
    </Whole>
  );
}
