import { Anchor, Button, Code, Collapse, Group, Paper, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconCheck, IconX } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { WaitingRun } from '#contract';
import { post } from '../api/client.ts';
import { ActionButton } from './action-button.tsx';
import { useAction } from './action.ts';
import { Ago } from './ago.tsx';
import { JsonBlock } from './json-block.tsx';
import { ShortId } from './short-id.tsx';

type Request = WaitingRun['requests'][number];

/** A Run that waits, with everything it asks; each is answered by itself. */
export function ConfirmationCard({ waiting }: { waiting: WaitingRun }) {
  const { runId, threadId, threadTitle, agentId, agentName, organizationName, since, expiresAt, requests } = waiting;
  return (
    <Paper component="article" withBorder p="sm" aria-label={`Run ${runId} waits`}>
      <Group gap="xs" mb="xs" justify="space-between">
        <Group gap="xs">
          <Anchor component={Link} href={`/agents/${agentId}`} size="sm" fw={600}>
            {agentName}
          </Anchor>
          <Text size="sm" c="dimmed">
            of {organizationName}
          </Text>
          <ShortId id={runId} of="Run" to={`/runs/${runId}`} />
          <Anchor component={Link} href={`/threads/${threadId}`} size="sm">
            {threadTitle ?? 'Untitled Thread'}
          </Anchor>
        </Group>
        <Text size="xs" c="dimmed">
          asked <Ago time={since} />
          {expiresAt !== null && (
            <>
              , expires <Ago time={expiresAt} />
            </>
          )}
        </Text>
      </Group>
      <Stack gap="xs">
        {requests.map((request) => (
          <RequestRow key={request.requestId} threadId={threadId} request={request} />
        ))}
      </Stack>
    </Paper>
  );
}

/** Longer input is folded: the first lines tell most. */
const SHOWN_LINES = 6;

function RequestRow({ threadId, request }: { threadId: string; request: Request }) {
  const input = JSON.stringify(request.toolInput, null, 2);
  const isLong = input.split('\n').length > SHOWN_LINES || input.length > 400;
  const [opened, { toggle }] = useDisclosure(!isLong);
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" align="flex-start" gap="xs">
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {request.title}
          </Text>
          <Code>{request.toolName}</Code>
          {isLong && (
            <Button
              variant="subtle"
              size="compact-xs"
              onClick={toggle}
              aria-expanded={opened}
              aria-label={`${opened ? 'Hide' : 'Show'} the input of request ${request.requestId}`}
            >
              {opened ? 'Hide the input' : 'Show the input'}
            </Button>
          )}
        </Group>
        <AnswerButtons threadId={threadId} request={request} />
      </Group>
      <Collapse expanded={opened} mt="xs">
        <JsonBlock value={request.toolInput} label={`Input of request ${request.requestId}`} maxHeight={320} />
      </Collapse>
    </Paper>
  );
}

/** Allow or reject. */
function AnswerButtons({ threadId, request: { requestId, title } }: { threadId: string; request: Request }) {
  const answer = (decision: 'allow_once' | 'reject_once') =>
    post('/threads/{threadId}/confirmations/{requestId}', { params: { threadId, requestId }, body: { decision } });
  const allow = useAction(() => answer('allow_once'), { done: `Allowed: ${title}.` });
  const reject = useAction(() => answer('reject_once'), { done: `Rejected: ${title}.` });
  const target = `${title}, request ${requestId}`;
  const disabled = allow.isBusy || reject.isBusy;
  return (
    <Group gap="xs" wrap="nowrap">
      <ActionButton
        {...{ target, disabled }}
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
