import type { ManagedRun } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { Ago } from '../components/ago.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { FactSection } from '../components/facts.tsx';

type Work = NonNullable<ManagedRun['work']>;

const STATES: Record<Work['state'], { label: string; color: string; due: string }> = {
  ready: { label: 'Ready: waits for a worker', color: 'gray', due: 'Expires' },
  leased: { label: 'Leased: a worker has it', color: 'indigo', due: 'Lease ends' },
  waiting: { label: 'Waits for a person', color: 'orange', due: 'Expires' },
  delayed: { label: 'Delayed: not due yet', color: 'orange', due: 'Due' },
  limited: { label: 'Limited: waits for a concurrency limit', color: 'orange', due: 'Due' },
};

/** While the queue is paused, the time that a Run may wait for a worker stands still. */
const PAUSED = { label: 'Ready: the queue is paused', color: 'orange', due: null };

/** What dispatcher and reaper know of a live Run. */
export function WorkItem({ work }: { work: Work }) {
  const isReady = work.state === 'ready';
  const { data } = useOperation('/queue', {}, { enabled: isReady, refetchInterval: 5_000 });
  const isPaused = isReady && data !== undefined && data.queue.pausedAt !== null;
  const { label, color, due } = isPaused ? PAUSED : STATES[work.state];
  return (
    <FactSection
      label="Work"
      facts={{
        Work: <StatusBadge color={color}>{label}</StatusBadge>,
        'In this state since': <Ago time={work.since} />,
        'Limited by': work.limitedBy && `The ${work.limitedBy}’s limit`,
        Worker: work.holder && <ShortId id={work.holder} of="worker" />,
        Attempt: work.attempt,
        Dispatch: work.dispatch,
        ...(due !== null && { [due]: work.dueAt && <Ago time={work.dueAt} /> }),
      }}
    />
  );
}
