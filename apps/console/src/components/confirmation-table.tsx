import { Anchor, Code, Group, Stack, Table, Text } from '@mantine/core';
import { IconCheck, IconChecks, IconX } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { WaitingRun } from '#contract';
import { post } from '../api/client.ts';
import { ActionButton } from './action-button.tsx';
import { useAction } from './action.ts';
import { Ago } from './ago.tsx';
import { ConfirmingButton } from './confirming-button.tsx';
import { Customer } from './customer.tsx';
import { counted } from './format.ts';
import { RecordList } from './record-list.tsx';
import { RecordRow, type Column } from './record-table.tsx';
import { ShortId } from './short-id.tsx';
import { StatusBadge } from './status-badge.tsx';
import { ToolArguments } from './tool-arguments.tsx';

type Request = WaitingRun['requests'][number];

interface Row {
  /** The id of the request, so that no other request ever takes the row under the pointer. */
  id: string;
  /** The id of the Run. */
  place: string;
  waiting: WaitingRun;
  request: Request;
  /** Whether it is the first request of its Run. */
  isFirst: boolean;
}

const COLUMNS: readonly Column[] = ['Customer', 'Conversation', 'Tool', 'Arguments', 'Asked'];
const ANSWER: Column = { name: 'Answer', ta: 'right' };

interface Props {
  waiting: WaitingRun[];
  /** Whether there are more waiting Runs. */
  hasMore: boolean;
  isOfThread?: boolean;
}

/** One row for each request of Runs that wait for a person. `isOfThread`: without what all rows have in common. */
export function ConfirmationTable({ waiting, hasMore, isOfThread = false }: Props) {
  const rows = waiting.flatMap((run): Row[] =>
    run.requests.map((request, i) => {
      return { id: request.requestId, place: run.runId, waiting: run, request, isFirst: i === 0 };
    }),
  );
  return (
    <RecordList
      aria-label="Confirmations"
      noun="request"
      minWidth={isOfThread ? 520 : 900}
      columns={[...COLUMNS.slice(isOfThread ? 2 : 0), ANSWER]}
      rows={rows}
      hasMore={hasMore}
      verticalSpacing="xs"
    >
      {({ id, place: _, ...row }, isGone) => <RequestRow key={id} {...{ ...row, isOfThread, isGone }} />}
    </RecordList>
  );
}

type RowProps = Omit<Row, 'id' | 'place'> & { isOfThread: boolean; isGone: boolean };

function RequestRow({ waiting, request, isFirst, isOfThread, isGone }: RowProps) {
  const { runId, threadId, threadTitle, agentName, since, expiresAt, requests } = waiting;
  return (
    <RecordRow isGone={isGone} style={{ verticalAlign: 'top' }}>
      {isOfThread ? null : (
        <Table.Td maw={160}>
          <Customer {...waiting} />
        </Table.Td>
      )}
      {isOfThread ? null : (
        <Table.Td maw={220}>
          <Anchor component={Link} href={`/threads/${threadId}`} size="sm" lineClamp={2}>
            {threadTitle ?? 'Untitled Thread'}
          </Anchor>
          <Group gap={6}>
            <Text size="xs" c="dimmed">
              {agentName}
            </Text>
            <ShortId id={runId} of="Run" to={`/runs/${runId}`} />
          </Group>
        </Table.Td>
      )}
      <Table.Td maw={180}>
        <Text size="sm" fw={600}>
          {request.title}
        </Text>
        <Group gap={6}>
          <Code>{request.toolName}</Code>
          {request.destructive && <StatusBadge color="red">Destructive</StatusBadge>}
        </Group>
      </Table.Td>
      <Table.Td maw={360}>
        <ToolArguments input={request.toolInput} of={`request ${request.requestId}`} />
      </Table.Td>
      <Table.Td>
        <Text size="sm">
          <Ago time={since} />
        </Text>
        {expiresAt !== null && (
          <Text size="xs" c="dimmed">
            expires <Ago time={expiresAt} />
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right">
        {isGone ? (
          <Text size="sm">No longer waits</Text>
        ) : (
          <Stack gap={6} align="flex-end">
            <AnswerButtons threadId={threadId} request={request} />
            {isFirst && requests.length > 1 && <AllowAll waiting={waiting} />}
          </Stack>
        )}
      </Table.Td>
    </RecordRow>
  );
}

const answer = (threadId: string, requestId: string, decision: 'allow_once' | 'reject_once') =>
  post('/threads/{threadId}/confirmations/{requestId}', { params: { threadId, requestId }, body: { decision } });

/** Allow or reject. */
function AnswerButtons({ threadId, request }: { threadId: string; request: Request }) {
  const { requestId, title, destructive = false } = request;
  const allow = useAction(() => answer(threadId, requestId, 'allow_once'), { done: `Allowed: ${title}.` });
  const reject = useAction(() => answer(threadId, requestId, 'reject_once'), { done: `Rejected: ${title}.` });
  const target = `${title}, request ${requestId}`;
  const disabled = allow.isBusy || reject.isBusy;
  return (
    <Group gap="xs" wrap="nowrap">
      <ConfirmingButton
        {...{ target, disabled }}
        needsSecondClick={destructive}
        action={allow}
        label="Allow"
        color="teal"
        variant="filled"
        icon={IconCheck}
      />
      <ActionButton {...{ target, disabled }} action={reject} label="Reject" icon={IconX} />
    </Group>
  );
}

/** Allows all open requests of a Run, one after another. */
function AllowAll({ waiting: { runId, threadId, requests } }: { waiting: WaitingRun }) {
  const allow = async (): Promise<void> => {
    for (const { requestId } of requests) await answer(threadId, requestId, 'allow_once');
  };
  const action = useAction(allow, { done: `Allowed: ${counted(requests.length, 'tool call')}.` });
  return (
    <ConfirmingButton
      needsSecondClick={requests.some(({ destructive = false }) => destructive)}
      action={action}
      label={`Allow all ${requests.length} of this Run`}
      target={`Run ${runId}`}
      icon={IconChecks}
    />
  );
}
