import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link, useParams } from 'wouter';
import type { ManagedRun, ManagedThread, RunTimeline as Timeline } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { Ago } from '../components/ago.tsx';
import { CustomerLink } from '../components/customer.tsx';
import { formatTime } from '../components/format.ts';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { ShortId } from '../components/short-id.tsx';
import { hasEnded } from '../components/status-table.ts';
import { CopyRun } from '../run/copy-run.tsx';
import { Failure } from '../run/failure.tsx';
import { RunAttempts } from '../run/run-attempts.tsx';
import { RunTexts } from '../run/run-texts.tsx';
import { RunTimeline } from '../run/run-timeline.tsx';
import { RunUsage } from '../run/run-usage.tsx';
import { WorkItem } from '../run/work-item.tsx';
import { FactSection } from '../components/facts.tsx';
import { PendingConfirmations } from '../components/pending-confirmations.tsx';
import { TRIGGERS } from '../components/triggers.ts';

/** The intervals at which a live and an ended Run are read again, in milliseconds. */
const LIVE_MS = 2_000;
const ENDED_MS = 30_000;
const howOften = (answer: { run: ManagedRun } | undefined): number =>
  answer && hasEnded(answer.run.status) ? ENDED_MS : LIVE_MS;

export default function RunPage() {
  const { runId } = useParams<{ runId: string }>();
  return <RunOf key={runId} runId={runId} />;
}

function RunOf({ runId }: { runId: string }) {
  const read = useOperation('/runs/{runId}', { params: { runId } }, { refetchInterval: howOften });
  return (
    <>
      {read.data === undefined && <PageTitle title="Run" />}
      <QueryState query={read}>{({ run }) => <RunView run={run} />}</QueryState>
    </>
  );
}

function RunView({ run }: { run: ManagedRun }) {
  const { id: runId, threadId } = run;
  const isLive = !hasEnded(run.status);
  const thread = useOperation('/threads/{threadId}', { params: { threadId } }).data?.thread;
  // The interval depends on the Run in this answer, because the Run above may be newer.
  const read = useOperation('/runs/{runId}/timeline', { params: { runId } }, { refetchInterval: howOften });
  return (
    <>
      <PageTitle title={`Run of ${run.agentName}`}>
        <Group gap="xs">
          <CopyRun runId={runId} />
          <RunActions run={run} />
        </Group>
      </PageTitle>
      <Stack gap="md">
        <Failure run={run} />
        {isLive && <PendingConfirmations threadId={threadId} runId={runId} />}
        {read.data && <RunTexts timeline={read.data.timeline} isLive={isLive} />}
        <RunFacts run={run} thread={thread} timeline={read.data?.timeline} />
        {run.work && <WorkItem work={run.work} />}
        <QueryState query={read}>
          {({ timeline }) => (
            <>
              <RunUsage timeline={timeline} />
              <RunAttempts spans={timeline.spans} />
              <RunTimeline runId={runId} timeline={timeline} isLive={isLive} />
            </>
          )}
        </QueryState>
      </Stack>
    </>
  );
}

function RunFacts({
  run,
  thread,
  timeline,
}: {
  run: ManagedRun;
  thread: ManagedThread | undefined;
  timeline: Timeline | undefined;
}) {
  const { agentVersion: version = null, cancelledBy } = timeline ?? {};
  return (
    <FactSection
      label="About this Run"
      facts={{
        Status: <RunStatus status={run.status} />,
        Thread: (
          <Anchor component={Link} href={`/threads/${run.threadId}`} size="sm">
            {thread?.title ?? 'Untitled'}
          </Anchor>
        ),
        Agent: (
          <>
            <Anchor component={Link} href={`/agents/${run.agentId}`} size="sm">
              {run.agentName}
            </Anchor>
            {version !== null && (
              <Text component="span" display="block" size="xs" c="dimmed">
                Version {version}
              </Text>
            )}
          </>
        ),
        User: <CustomerLink userId={run.userId} organizationId={run.organizationId} />,
        Organization: <OrganizationLink id={run.organizationId} name={run.organizationName} />,
        Trigger: TRIGGERS[run.trigger],
        Created: <Moment time={run.createdAt} />,
        Started: <Moment time={run.startedAt} />,
        Ended: <Moment time={run.completedAt} />,
        'Cancelled by': cancelledBy && `${cancelledBy.name} (${cancelledBy.kind})`,
        Id: <ShortId id={run.id} of="Run" />,
        'Newest Run of its Thread': run.newerRunId && (
          <ShortId id={run.newerRunId} of="Run" to={`/runs/${run.newerRunId}`} />
        ),
        'Thread id': <ShortId id={run.threadId} of="Thread" />,
      }}
    />
  );
}

function Moment({ time }: { time: string | null }) {
  if (time === null) return <>–</>;
  return (
    <>
      <Ago time={time} />
      <Text component="span" display="block" size="xs" c="dimmed">
        {formatTime(time)}
      </Text>
    </>
  );
}
