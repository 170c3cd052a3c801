import { memo, useMemo } from 'react';
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  ThreadPrimitive,
  useAui,
  useAuiState,
  type MessageState,
} from '@assistant-ui/react';
import { ActionIcon, Alert, Button, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { useNetwork } from '@mantine/hooks';
import { IconArrowDown } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { Message } from '#client';
import { useThread, type ThreadView } from '#client/react';
import { Loading } from '../components/query-state.tsx';
import type { Access } from './access.ts';
import { ActionsContext, RetryableContext } from './chat-context.ts';
import classes from './chat.module.css';
import type { ChatAgent } from './chat-agents.ts';
import { Composer } from './composer.tsx';
import { MessageRow } from './message-row.tsx';
import { toMessage } from './sending.ts';
import { useChatRuntime } from './use-chat-runtime.ts';

interface Props {
  access: Access;
  agent: ChatAgent | undefined;
  threadId: string | null;
  onCreated: (threadId: string, isShown: boolean) => void;
  /** The unsent text of each chat, by Thread id, or by Agent id for a new chat. */
  unsent: Map<string, string>;
}

/** A Thread with the field for the next message. Without a Thread, the first message creates one. */
export function Conversation({ access, agent, threadId, onCreated, unsent }: Props) {
  const thread = useThread(threadId);
  const { run, isActive, questions, decide, retry, interrupt } = thread;
  const runtime = useChatRuntime({ access, thread, threadId, onCreated, unsent });
  const actions = useMemo(() => ({ decide, retry }), [decide, retry]);
  const isLoading = threadId !== null && !thread.caughtUp && thread.status !== 'ended';
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ActionsContext value={actions}>
        <RetryableContext value={run === null || isActive ? null : run.id}>
          <ComposerPrimitive.AttachmentDropzone className={classes.conversation} disabled={thread.status === 'ended'}>
            <ThreadPrimitive.Root className={classes.thread}>
              <ThreadPrimitive.Viewport
                className={classes.viewport}
                tabIndex={0}
                role="region"
                aria-label="Conversation"
              >
                <Messages isLoading={isLoading} />
                {threadId === null && <Greeting agent={agent} />}
                {run?.status === 'queued' && <Waiting />}
              </ThreadPrimitive.Viewport>
              <div className={classes.footer}>
                <ThreadPrimitive.ScrollToBottom asChild>
                  <ActionIcon variant="default" radius="xl" className={classes.toEnd} aria-label="Scroll to the end">
                    <IconArrowDown size={16} />
                  </ActionIcon>
                </ThreadPrimitive.ScrollToBottom>
                <Connection view={thread} agentId={access.agentId} />
                <Composer
                  unsent={unsent}
                  place={threadId ?? access.agentId}
                  stop={isActive ? interrupt : null}
                  closed={thread.status === 'ended' ? 'This chat is closed.' : null}
                />
              </div>
            </ThreadPrimitive.Root>
            <div className={classes.dropHere}>Drop files to attach them</div>
          </ComposerPrimitive.AttachmentDropzone>
          <VisuallyHidden role="status">{announcement(thread, questions[0]?.toolName)}</VisuallyHidden>
        </RetryableContext>
      </ActionsContext>
    </AssistantRuntimeProvider>
  );
}

/** Renders when messages are added or removed. Each row renders again only when its own message changes. */
const Messages = memo(function Messages({ isLoading }: { isLoading: boolean }) {
  const aui = useAui();
  const hasEarlier = useAuiState(({ thread }) => thread.hasEarlier);
  const isLoadingEarlier = useAuiState(({ thread }) => thread.isLoadingEarlier);
  const isEmpty = useAuiState(({ thread }) => thread.messages.length === 0);
  if (isLoading && isEmpty) return <Loading />;
  return (
    <>
      {hasEarlier && (
        <Button variant="subtle" loading={isLoadingEarlier} onClick={() => void aui.thread.loadEarlier()}>
          Earlier messages
        </Button>
      )}
      <ThreadPrimitive.Messages>{renderMessage}</ThreadPrimitive.Messages>
    </>
  );
});

const renderMessage = ({ message: { role, content, metadata } }: { message: MessageState }) => {
  const message = metadata.custom['message'] as Message | undefined;
  if (message !== undefined) return <MessageRow message={message} />;
  // assistant-ui adds its own messages: one while its files are uploaded, and an empty answer before the first part.
  return role === 'user' && <MessageRow message={toMessage(textOf(content))} />;
};

const textOf = (content: MessageState['content']): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');

function Greeting({ agent }: { agent: ChatAgent | undefined }) {
  const isEmpty = useAuiState(({ thread }) => thread.messages.length === 0);
  if (!isEmpty || agent === undefined) return null;
  return (
    <Stack align="center" gap={4} className={classes.greeting}>
      <Title order={2} size="h1">
        {agent.name}
      </Title>
      <Text c="dimmed" ta="center" maw={520}>
        {agent.description}
      </Text>
    </Stack>
  );
}

function Waiting() {
  return (
    <Text size="xs" c="dimmed" className={classes.row}>
      Waiting for a worker…
    </Text>
  );
}

/** A notice that says why the conversation has stopped, and what the person can do. */
function Connection({ view: { status, error, isActive }, agentId }: { view: ThreadView; agentId: string }) {
  const { online } = useNetwork();
  if (status === 'ended') {
    const isGone = error?.code === 'not_found';
    return (
      <Alert color="red" py="xs" role="alert">
        <Text size="sm">
          {isGone ? 'This chat was deleted, or it does not exist.' : (error?.message ?? 'The chat has ended.')}
        </Text>
        {isGone ? (
          <Button variant="default" component={Link} href={`/${agentId}`}>
            New chat
          </Button>
        ) : (
          <Button variant="default" onClick={() => window.location.reload()}>
            Reload
          </Button>
        )}
      </Alert>
    );
  }
  if (!online) {
    const next = isActive ? 'The answer continues, and appears here' : 'Messages can be sent';
    return <Notice>{`You are offline. ${next} when you are back.`}</Notice>;
  }
  return status === 'reconnecting' && error !== null ? <Notice>Reconnecting…</Notice> : null;
}

function Notice({ children }: { children: string }) {
  return (
    <Alert color="orange" py={6} role="status">
      <Text size="sm">{children}</Text>
    </Alert>
  );
}

const STATES: Record<string, string> = {
  queued: 'Message sent.',
  running: 'The agent is answering.',
  completed: 'The answer is complete.',
  failed: 'The answer failed.',
  cancelled: 'The answer was stopped.',
  expired: 'The answer has ended, because nobody decided in time.',
};

/** Returns the state for screen readers. They do not get the streaming text, because they would read it again after each delta. */
function announcement({ run, caughtUp }: ThreadView, asked: string | undefined): string {
  if (!caughtUp || run === null) return '';
  return asked === undefined ? (STATES[run.status] ?? '') : `The agent asks for approval to use ${asked}.`;
}
