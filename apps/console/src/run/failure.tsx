import { Alert, Code, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { ManagedRun } from '#contract';
import { formatDuration } from '../components/format.ts';

type Cause = NonNullable<ManagedRun['cause']>;

/** Shows why a Run failed or is retried: its error, and the cause of its last failed attempt. */
export function Failure({ run }: { run: ManagedRun }) {
  const { status, error, cause } = run;
  if (error === null && (!cause || status === 'completed')) return null;
  const attempt = cause?.attempt ?? null;
  const title = error === null ? `Attempt ${attempt ?? ''} failed` : `Failed: ${error.code}`;
  return (
    <Alert color={error === null ? 'orange' : 'red'} icon={<IconAlertTriangle size={18} />} title={title}>
      <Stack gap={4}>
        {error !== null && (
          <Text size="sm">
            {error.message} {remedyOf(run)}
          </Text>
        )}
        {cause && (
          <>
            {/* The summary of a limit of the Run is its code, which the title has. */}
            {cause.summary !== error?.code && (
              <Text size="sm" fw={600}>
                {cause.summary}
              </Text>
            )}
            {cause.message !== undefined && (
              <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
                {cause.message}
              </Code>
            )}
            <Text size="xs" c="dimmed">
              {detailsOf(cause).join(' · ')}
            </Text>
          </>
        )}
      </Stack>
    </Alert>
  );
}

function remedyOf({ remedy, mayBeRetried }: ManagedRun): string {
  if (!mayBeRetried) return 'It can no longer be retried: its Thread has a newer Run, or is archived or terminated.';
  return remedy?.replaceAll('`', '') ?? '';
}

function detailsOf({ attempt, type, code, requestId, waitedMs, step }: Cause): string[] {
  const details: [string, string | number | null | undefined][] = [
    ['Attempt', attempt],
    ['Type', type],
    ['Code', code],
    ['Request id', requestId],
    ['Waited', waitedMs === undefined ? null : formatDuration(waitedMs)],
    ['Last step', step],
  ];
  return details.flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name} ${value}`]));
}
