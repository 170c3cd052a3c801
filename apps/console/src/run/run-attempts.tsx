import { Group, Table, Text } from '@mantine/core';
import type { TimelineSpan } from '#contract';
import { Ago } from '../components/ago.tsx';
import { formatCount, formatDuration, formatTime } from '../components/format.ts';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { Section } from '../components/section.tsx';
import { ShortId } from '../components/short-id.tsx';
import { attemptsOf, type Attempt } from './attempts.ts';
import { OutcomeBadge } from './outcome-badge.tsx';

const COLUMNS = ['Attempt', 'Outcome', 'Started', 'Took', 'Model steps', 'Tool calls', 'Tokens', 'Worker'];

/** Compares the attempts of a Run. Shows nothing for a Run with only one attempt. */
export function RunAttempts({ spans }: { spans: readonly TimelineSpan[] }) {
  const attempts = attemptsOf(spans);
  if (attempts.length < 2) return null;
  return (
    <Section title="Attempts">
      <RecordTable aria-label="Attempts of the Run" minWidth={800} columns={COLUMNS}>
        {attempts.map((attempt) => (
          <AttemptRow key={attempt.attempt} attempt={attempt} />
        ))}
      </RecordTable>
    </Section>
  );
}

function AttemptRow({ attempt: of }: { attempt: Attempt }) {
  const { attempt, holder, startedAt, endedAt, outcome, cause, inputTokens, outputTokens } = of;
  const hasUsage = inputTokens !== null && outputTokens !== null;
  return (
    <RecordRow>
      <Table.Td>{attempt}</Table.Td>
      <Table.Td>
        <Group gap={6}>
          <OutcomeBadge outcome={outcome} isActive={endedAt === null} />
          {cause && (
            <Text size="xs" title={cause.message}>
              {cause.summary}
            </Text>
          )}
        </Group>
      </Table.Td>
      <Table.Td title={formatTime(startedAt)}>
        <Ago time={startedAt} />
      </Table.Td>
      <Table.Td>{endedAt === null ? '–' : formatDuration(Date.parse(endedAt) - Date.parse(startedAt))}</Table.Td>
      <Table.Td>{formatCount(of.modelSteps)}</Table.Td>
      <Table.Td>{formatCount(of.toolCalls)}</Table.Td>
      <Table.Td>{hasUsage ? `${formatCount(inputTokens)} in, ${formatCount(outputTokens)} out` : '–'}</Table.Td>
      <Table.Td>{holder === null ? '–' : <ShortId id={holder} of="worker" />}</Table.Td>
    </RecordRow>
  );
}
