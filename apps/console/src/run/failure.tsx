import type { ReactNode } from 'react';
import { Alert, Anchor, Code, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { ManagedRun } from '#contract';
import { formatDuration } from '../components/format.ts';

type Cause = NonNullable<ManagedRun['cause']>;

/**
 * Shows the customer of a Run that failed or is retried, its error, and the cause of its last failed attempt. Shows the
 * remedy if the Run failed.
 */
export function Failure({ run }: { run: ManagedRun }) {
  const { status, error, cause, userId, organizationName, threadTitle } = run;
  if (error === null && (!cause || status === 'completed')) return null;
  const title = error === null ? `Attempt ${cause?.attempt ?? ''} failed` : `Failed: ${error.code}`;
  return (
    <Alert color={error === null ? 'orange' : 'red'} icon={<IconAlertTriangle size={18} />} title={title}>
      <Stack gap="xs">
        <Line name="Customer">
          {userId} of {organizationName}
          {threadTitle && `, in “${threadTitle}”`}
        </Line>
        <Line name="What failed">
          {/* For a limit of the Run, the summary of the cause is the error code, which the title has. */}
          {cause && cause.summary !== error?.code && <Text fw={600}>{cause.summary}</Text>}
          {error?.message}
          {cause && <CauseDetails cause={cause} />}
        </Line>
        {error !== null && (
          <Line name="What to do">
            <Remedy run={run} />
          </Line>
        )}
      </Stack>
    </Alert>
  );
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text component="div" size="sm">
        {children}
      </Text>
    </div>
  );
}

function CauseDetails({ cause }: { cause: Cause }) {
  return (
    <>
      {cause.message !== undefined && (
        <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {cause.message}
        </Code>
      )}
      <Text size="xs" c="dimmed">
        {detailsOf(cause).join(' · ')}
      </Text>
    </>
  );
}

function Remedy({ run: { remedy, mayBeRetried, newerRunId } }: { run: ManagedRun }) {
  if (mayBeRetried) return <>{remedy?.replaceAll('`', '') ?? 'Retry the Run.'}</>;
  if (newerRunId === undefined) return <>The Run cannot be retried.</>;
  if (newerRunId === null) return <>The Run cannot be retried: its Thread is archived or terminated.</>;
  return (
    <>
      The Run cannot be retried: its Thread has{' '}
      <Anchor component={Link} href={`/runs/${newerRunId}`} size="sm" c="inherit" underline="always">
        a newer Run
      </Anchor>
      .
    </>
  );
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
