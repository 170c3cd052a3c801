import { Anchor, Group, Stack, Tabs } from '@mantine/core';
import { Link, useParams } from 'wouter';
import type { AdminAnswer, AdminOperations, ManagedThread } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { Ago } from '../components/ago.tsx';
import { formatCount } from '../components/format.ts';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { ThreadStatus } from '../components/thread-status.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { FactSection } from '../components/facts.tsx';
import { LiveLog } from '../thread/live-log.tsx';
import { PendingConfirmations } from '../components/pending-confirmations.tsx';
import { StoredEvents } from '../thread/stored-events.tsx';
import { ThreadActions } from '../thread/thread-actions.tsx';
import { ThreadFiles } from '../thread/thread-files.tsx';
import { ThreadRuns } from '../thread/thread-runs.tsx';

type ThreadAnswer = AdminAnswer<AdminOperations['getThread']>;

export default function ThreadPage() {
  const { threadId } = useParams<{ threadId: string }>();
  // The key resets all state when another Thread is shown.
  return <ThreadOf key={threadId} threadId={threadId} />;
}

function ThreadOf({ threadId }: { threadId: string }) {
  const read = useOperation('/threads/{threadId}', { params: { threadId } }, { refetchInterval: 5_000 });
  return (
    <>
      {read.data === undefined && <PageTitle title="Thread" />}
      <QueryState query={read}>{(answer) => <ThreadView answer={answer} />}</QueryState>
    </>
  );
}

function ThreadView({ answer }: { answer: ThreadAnswer }) {
  const { thread, runs, events } = answer;
  const run = currentOf(runs) ?? runs.find(({ id }) => id === thread.lastRunId);
  return (
    <>
      <PageTitle title={thread.title ?? 'Untitled Thread'}>
        <Group gap="xs">
          {run && <RunActions run={run} />}
          <ThreadActions thread={thread} />
        </Group>
      </PageTitle>
      <Stack gap="md">
        <PendingConfirmations threadId={thread.id} />
        <ThreadFacts thread={thread} events={events} />
        <ThreadTabs threadId={thread.id} events={events} />
      </Stack>
    </>
  );
}

/** Returns the oldest Run that has not ended. The newest 20 are read with the Thread. */
const currentOf = (runs: ThreadAnswer['runs']) => runs.findLast(({ completedAt }) => completedAt === null);

function ThreadFacts({ thread, events }: { thread: ManagedThread; events: number }) {
  const { ownerPersonId, ownerTokenId, lastRunId } = thread;
  return (
    <FactSection
      label="About this Thread"
      facts={{
        Status: (
          <Group component="span" gap={4}>
            <ThreadStatus status={thread.status} />
            {thread.archived && <StatusBadge color="gray">Archived</StatusBadge>}
          </Group>
        ),
        Agent: (
          <Anchor component={Link} href={`/agents/${thread.agentId}`} size="sm">
            {thread.agentName}
          </Anchor>
        ),
        Organization: <OrganizationLink id={thread.organizationId} name={thread.organizationName} />,
        User: thread.userId,
        Reference: thread.externalRef,
        'Owned by a person': ownerPersonId && (
          <ShortId id={ownerPersonId} of="person" to={`/people/${ownerPersonId}`} />
        ),
        'Owned by a service token': ownerTokenId && <ShortId id={ownerTokenId} of="token" />,
        Kind: thread.kind === 'pet' ? 'Pet' : 'Cattle',
        Created: <Ago time={thread.createdAt} />,
        Updated: <Ago time={thread.updatedAt} />,
        Id: <ShortId id={thread.id} of="Thread" />,
        'Newest Run': lastRunId && <ShortId id={lastRunId} of="Run" to={`/runs/${lastRunId}`} />,
        'Stored events': formatCount(events),
      }}
    />
  );
}

const TABS = ['runs', 'files', 'events'];

function ThreadTabs({ threadId, events }: { threadId: string; events: number }) {
  const [{ tab }, change] = useUrlFilter(['tab', 'type'] as const);
  const show = (chosen: string | null) => change({ tab: chosen === 'log' ? '' : (chosen ?? ''), type: '' });
  return (
    <Tabs value={TABS.includes(tab) ? tab : 'log'} onChange={show} keepMounted={false}>
      <Tabs.List mb="sm">
        <Tabs.Tab value="log">Live log</Tabs.Tab>
        <Tabs.Tab value="runs">Runs</Tabs.Tab>
        <Tabs.Tab value="files">Files</Tabs.Tab>
        <Tabs.Tab value="events">Stored events</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="log">
        <LiveLog threadId={threadId} events={events} />
      </Tabs.Panel>
      <Tabs.Panel value="runs">
        <ThreadRuns threadId={threadId} />
      </Tabs.Panel>
      <Tabs.Panel value="files">
        <ThreadFiles threadId={threadId} />
      </Tabs.Panel>
      <Tabs.Panel value="events">
        <StoredEvents threadId={threadId} newest={events} />
      </Tabs.Panel>
    </Tabs>
  );
}
