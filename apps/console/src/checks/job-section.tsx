import type { ReactNode } from 'react';
import { Alert, Button, Group, Progress as Bar, SimpleGrid, Text } from '@mantine/core';
import { useClock } from '../components/clock.ts';
import { formatCount, formatDuration } from '../components/format.ts';
import { ErrorNote } from '../components/query-state.tsx';
import { Section } from '../components/section.tsx';
import type { Job } from './use-progress.ts';

/** What it has come to the end of: all Threads, or what was left of them when it was gone on with. */
export type JobEnd = 'all' | 'rest';

interface Props<Line> {
  title: string;
  /** What it does, for who has never pressed it. */
  about: string;
  job: Job<Line>;
  /** What is counted, live, by its noun. */
  numbers: (line: Line) => Record<string, number>;
  /** What came of it so far. */
  result: (line: Line, end: JobEnd | null) => ReactNode;
}

/** Work that goes on while one looks: its start, live numbers, end, and what came of it. */
export function JobSection<Line extends { lastThreadId: string | null }>({ title, about, ...props }: Props<Line>) {
  const { job, numbers, result } = props;
  const { phase, line } = job;
  const isRunning = phase === 'running';
  const from = phase === 'stopped' || phase === 'failed' ? (line?.lastThreadId ?? null) : null;
  return (
    <Section
      title={title}
      actions={
        <Group gap="xs">
          {from !== null && (
            <Button onClick={() => job.start(from)} aria-label={`Continue ${title}`}>
              Continue
            </Button>
          )}
          {isRunning ? (
            <Button color="red" variant="outline" onClick={job.stop} aria-label={`Stop ${title}`}>
              Stop
            </Button>
          ) : (
            <Button variant="default" onClick={() => job.start()} aria-label={`Start ${title}`}>
              Start
            </Button>
          )}
        </Group>
      }
    >
      <Text size="sm" c="dimmed" mb="sm">
        {about} Leaving this page stops it.
      </Text>
      {isRunning && <Bar value={100} animated striped size="sm" mb="sm" aria-label={`${title} is running`} />}
      {/* Numbers that change each second are not read out; the end is. */}
      <div role="status" aria-live={isRunning ? 'off' : 'polite'} aria-label={`${title}: progress`}>
        {phase !== 'idle' && <Phase job={job} />}
        {job.from !== null && (
          <Text size="sm" mb="xs">
            Continued after Thread {job.from}; earlier Threads are not counted here.
          </Text>
        )}
        {line !== null && <Numbers numbers={numbers(line)} />}
      </div>
      {job.error && <JobError job={job} />}
      {line !== null && result(line, phase !== 'done' ? null : job.from === null ? 'all' : 'rest')}
    </Section>
  );
}

const PHASES = {
  running: 'Running for',
  done: 'Done after',
  stopped: 'Stopped after',
  failed: 'Failed after',
} as const;

function Phase<Line>({ job: { phase, startedAt, endedAt } }: { job: Job<Line> }) {
  const lasted = useClock((now) => formatDuration((endedAt ?? now) - startedAt));
  if (phase === 'idle') return null;
  return (
    <Text size="sm" mb="xs">
      {PHASES[phase]} {lasted}
    </Text>
  );
}

function Numbers({ numbers }: { numbers: Record<string, number> }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm" mb="sm">
      {Object.entries(numbers).map(([name, value]) => (
        <div key={name}>
          <Text size="xs" c="dimmed">
            {name}
          </Text>
          <Text size="lg" fw={600} style={{ fontVariantNumeric: 'tabular-nums' }}>
            {formatCount(value)}
          </Text>
        </div>
      ))}
    </SimpleGrid>
  );
}

function JobError<Line>({ job: { error, start } }: { job: Job<Line> }) {
  if (error === null) return null;
  if (error.status !== 409) return <ErrorNote error={error} onTryAgain={() => start()} />;
  return (
    <Alert color="orange" title="Another one is already running">
      A process of the service runs one at a time. Wait until it ends. The audit log may show who started it.
    </Alert>
  );
}
