import type { ReactNode } from 'react';
import { Anchor, Code, SimpleGrid, Table } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '#contract';
import { Ago } from '../components/ago.tsx';
import { FactList } from '../components/facts.tsx';
import { formatBytes, formatCount, formatDuration, shortenId } from '../components/format.ts';
import { Empty } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { Section } from '../components/section.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { QueueSwitch } from './queue-switch.tsx';
import { sinceOf } from './series.ts';

type Part = { overview: Overview };

/** What Runs stand on, and how it is. */
export function Installation({ overview }: Part) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm" mt="sm">
      <Failures overview={overview} />
      <Workers overview={overview} />
      <Queue overview={overview} />
      <Stores overview={overview} />
    </SimpleGrid>
  );
}

function Rows({ label, head, rows }: { label: string; head: string[]; rows: { key: string; cells: ReactNode[] }[] }) {
  return (
    <RecordTable aria-label={label} minWidth={420} columns={head}>
      {rows.map(({ key, cells }) => (
        <RecordRow key={key}>
          {cells.map((cell, index) => (
            <Table.Td key={head[index]}>{cell}</Table.Td>
          ))}
        </RecordRow>
      ))}
    </RecordTable>
  );
}

function Failures({ overview }: Part) {
  const { failures } = overview;
  return (
    <Section title="Failures by code">
      {failures.length === 0 ? (
        <Empty>No Run failed within the window.</Empty>
      ) : (
        <Rows
          label="Failures by code"
          head={['Code', 'Runs', 'Last', 'Last Run']}
          rows={failures.map(({ code, count, lastAt, lastRunId }) => ({
            key: code,
            cells: [
              <Anchor component={Link} href={failedWith(code, sinceOf(overview))} size="sm">
                {code}
              </Anchor>,
              formatCount(count),
              <Ago time={lastAt} />,
              <ShortId id={lastRunId} of="Run" to={`/runs/${lastRunId}`} />,
            ],
          }))}
        />
      )}
    </Section>
  );
}

const failedWith = (errorCode: string, endedSince: string): string =>
  `/runs?${new URLSearchParams({ scope: 'all', status: 'failed', errorCode, endedSince }).toString()}`;

function Workers({ overview: { queue } }: Part) {
  return (
    <Section title="Workers">
      {queue.workers.length === 0 ? (
        <Empty>No worker is alive.</Empty>
      ) : (
        <Rows
          label="Workers"
          head={['Worker', 'Slots', 'Leased Runs', 'Last heartbeat']}
          rows={queue.workers.map(({ holder, slots, leased, seenAt }) => ({
            key: holder,
            cells: [<Code title={holder}>{shortenId(holder)}</Code>, slots, leased, <Ago time={seenAt} />],
          }))}
        />
      )}
    </Section>
  );
}

function Queue({ overview: { queue } }: Part) {
  const { ready, leased, waiting, delayed, limited } = queue.runs;
  return (
    <Section title="Queue" actions={<QueueSwitch queue={queue} />}>
      <FactList
        facts={{
          State: <QueueState queue={queue} />,
          Backend: `${queue.backend}, “${queue.name}”`,
          'Enqueued jobs': queue.offered === null ? 'unknown' : formatCount(queue.offered),
          'Oldest ready Run':
            queue.oldestReadyMs === null ? 'none' : `waiting for ${formatDuration(queue.oldestReadyMs)}`,
          'Live Runs': `${ready} ready, ${leased} leased, ${waiting} waiting, ${delayed} delayed, ${limited} limited`,
        }}
      />
    </Section>
  );
}

function QueueState({ queue: { pausedAt, pausedBy, awaySince } }: { queue: Overview['queue'] }) {
  if (awaySince !== null) {
    return (
      <>
        <StatusBadge color="red">Unreachable</StatusBadge> since <Ago time={awaySince} />
      </>
    );
  }
  if (pausedAt === null) return <StatusBadge color="teal">Running</StatusBadge>;
  return (
    <>
      <StatusBadge color="orange">Paused</StatusBadge> {pausedBy?.includes('bullmq') && 'by a BullMQ tool '}since{' '}
      <Ago time={pausedAt} />
    </>
  );
}

function Stores({ overview: { database, redis } }: Part) {
  const { version, latencyMs, connections, maxConnections, sizeBytes } = database;
  return (
    <Section title="PostgreSQL and Redis">
      <FactList
        facts={{
          PostgreSQL: `${version}, latency ${formatDuration(latencyMs)}`,
          Connections: `${formatCount(connections)} of ${formatCount(maxConnections)}`,
          Size: formatBytes(sizeBytes),
          Redis: redis === null ? 'Not used' : <RedisState redis={redis} />,
          'Redis memory': redis?.usedBytes ? formatBytes(redis.usedBytes) : null,
        }}
      />
    </Section>
  );
}

function RedisState({ redis: { status, version, latencyMs } }: { redis: NonNullable<Overview['redis']> }) {
  if (status === 'away') return <StatusBadge color="red">Unreachable</StatusBadge>;
  return `${version ?? ''}, latency ${formatDuration(latencyMs ?? 0)}`;
}
