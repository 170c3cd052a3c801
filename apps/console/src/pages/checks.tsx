import { Alert, Anchor, Code, List, Stack, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Doctor } from '../checks/doctor.tsx';
import { JobSection, type JobEnd } from '../checks/job-section.tsx';
import { useLeaveGuard } from '../checks/use-leave-guard.ts';
import { useProgress, type ProgressLine } from '../checks/use-progress.ts';
import type { Question } from '../components/confirm.tsx';
import { counted, formatCount } from '../components/format.ts';
import { PageTitle } from '../components/page-title.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';

const LEAVE: Question = {
  title: 'Leave and stop it?',
  message: 'If you leave this page, the running check or rebuild stops. Repaired rows stay repaired.',
  action: 'Leave',
  isDangerous: true,
};

export default function ChecksPage() {
  const verify = useProgress('/verify');
  const rebuild = useProgress('/projections/rebuild');
  useLeaveGuard(verify.phase === 'running' || rebuild.phase === 'running' ? LEAVE : null);
  return (
    <>
      <PageTitle title="Checks" />
      <Stack gap="md">
        <Doctor />
        <JobSection
          title="Verify"
          about="Checks every invariant of every stream while the service runs. Changes nothing."
          job={verify}
          numbers={({ streams, events, found, unknownEvents }) => ({
            Streams: streams,
            Events: events,
            Findings: found,
            'Events of a newer release': unknownEvents,
          })}
          result={(line, end) => <Findings line={line} end={end} />}
        />
        <JobSection
          title="Rebuild"
          about="Rebuilds every summary from its stream while the service runs, and repairs differences."
          job={rebuild}
          numbers={({ streams, events, differences, left }) => ({
            Streams: streams,
            Events: events,
            'Rows repaired': differences,
            'Threads skipped': left,
          })}
          result={(line, end) => <Mended line={line} end={end} />}
        />
      </Stack>
    </>
  );
}

const ALL_HOLDS: Record<JobEnd, string> = {
  all: 'Every invariant holds.',
  rest: 'Every invariant holds in the Threads checked. To check all Threads, start over.',
};

function Findings({ line, end }: { line: ProgressLine<'/verify'>; end: JobEnd | null }) {
  if (line.found === 0) return end && <Alert color="teal">{ALL_HOLDS[end]}</Alert>;
  return (
    <>
      <Alert color="red" title={`${counted(line.found, 'finding')}`} mb="sm">
        <ByName counts={line.byInvariant} />
        {end && ' Rebuild repairs summaries; an error in a stream itself needs a developer.'}
      </Alert>
      {line.findings.length > 0 && (
        <RecordTable aria-label="Findings" minWidth={520} columns={['Thread', 'Invariant', 'Finding']}>
          {line.findings.map(({ threadId, invariant, message }, i) => (
            <RecordRow key={i}>
              <Table.Td>
                {threadId !== '' && <ShortId id={threadId} of="Thread" to={`/threads/${threadId}`} />}
              </Table.Td>
              <Table.Td>
                <Code>{invariant}</Code>
              </Table.Td>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>{message}</Table.Td>
            </RecordRow>
          ))}
        </RecordTable>
      )}
      {line.found > line.findings.length && end && <Text size="sm">Showing the first {line.findings.length}.</Text>}
    </>
  );
}

const ALL_RIGHT: Record<JobEnd, string> = {
  all: 'All summaries match their streams.',
  rest: 'All summaries checked match their streams.',
};

function Mended({ line, end }: { line: ProgressLine<'/projections/rebuild'>; end: JobEnd | null }) {
  if (line.differences + line.left === 0) {
    return end && <Alert color="teal">{ALL_RIGHT[end]}</Alert>;
  }
  return (
    <>
      {line.differences > 0 && (
        <Alert color="orange" title={`${counted(line.differences, 'row')} repaired`} mb="sm">
          <ByName counts={line.byTable} />
        </Alert>
      )}
      {line.left > 0 && (
        <Alert color="orange" title={`${counted(line.left, 'Thread')} skipped`}>
          This release does not understand all their events:
          <List size="sm">
            {line.leftThreadIds.map((threadId) => (
              <List.Item key={threadId}>
                <Anchor component={Link} href={`/threads/${threadId}`} size="sm">
                  {threadId}
                </Anchor>
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
    </>
  );
}

function ByName({ counts }: { counts: Record<string, number> }) {
  const named = Object.entries(counts).map(([name, amount]) => `${name}: ${formatCount(amount)}`);
  return <>{named.join(', ')}</>;
}
