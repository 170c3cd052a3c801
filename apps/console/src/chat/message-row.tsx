import { memo, use } from 'react';
import { MessagePrimitive } from '@assistant-ui/react';
import { Alert, Group, Loader, Text, VisuallyHidden } from '@mantine/core';
import { IconAlertTriangle, IconPlayerStop, IconRefresh } from '@tabler/icons-react';
import type { Message, MessagePart } from '#client';
import { BusyButton } from './busy-button.tsx';
import { useChatActions, RetryableContext } from './chat-context.ts';
import classes from './chat.module.css';
import { FileChip } from './file-chip.tsx';
import { Markdown } from './markdown.tsx';
import { ThinkingPart } from './thinking-part.tsx';
import { ToolCall } from './tool-call.tsx';
import { SENDING_ID } from './sending.ts';

type AgentMessage = Extract<Message, { role: 'agent' }>;

/** One message. Renders again only when one of its parts changes, because only then its object changes. */
export const MessageRow = memo(function MessageRow({ message }: { message: Message }) {
  return (
    <MessagePrimitive.Root className={classes.row} data-role={message.role}>
      <VisuallyHidden component="h2">{message.role === 'user' ? 'You' : 'Agent'}</VisuallyHidden>
      {message.role === 'user' ? <UserMessage message={message} /> : <AgentAnswer message={message} />}
    </MessagePrimitive.Root>
  );
});

function UserMessage({ message: { id, parts } }: { message: Message }) {
  const files = parts.filter((part) => part.type === 'file');
  return (
    <>
      <div className={classes.bubble} data-sending={id === SENDING_ID || undefined}>
        {parts.map((part, i) => part.type === 'text' && <p key={i}>{part.text}</p>)}
      </div>
      {files.length > 0 && (
        <Group gap={6} justify="flex-end">
          {files.map((part) => (
            <FileChip key={part.fileId} part={part} />
          ))}
        </Group>
      )}
      {id === SENDING_ID && <Note>Sending…</Note>}
    </>
  );
}

function AgentAnswer({ message }: { message: AgentMessage }) {
  const { parts, status, truncated } = message;
  const isWorking = status === 'running' && !parts.some(isInProgress);
  return (
    <div className={classes.answer}>
      {truncated && <Note>Earlier parts of this answer are not shown.</Note>}
      {parts.map((part, index) => (
        <AnswerPart key={keyOf(part, index)} part={part} />
      ))}
      {isWorking && (
        <Group gap={8}>
          <Loader size={14} type="dots" aria-hidden />
          <Note>Working…</Note>
        </Group>
      )}
      <Ending message={message} />
    </div>
  );
}

const isInProgress = (part: MessagePart): boolean =>
  (part.type === 'tool_call' && (part.state === 'running' || part.state === 'waiting')) ||
  ((part.type === 'text' || part.type === 'thinking') && part.state === 'streaming');

/** Returns a stable key. The index is not stable, because a text can be inserted before others. */
function keyOf(part: MessagePart, index: number): string {
  if (part.type === 'tool_call') return part.toolCallId;
  return part.type === 'file' ? part.fileId : `${part.type} ${part.stepId ?? index}`;
}

const AnswerPart = memo(function AnswerPart({ part }: { part: MessagePart }) {
  switch (part.type) {
    case 'text':
      return <Markdown text={part.text} isStreaming={part.state === 'streaming'} />;
    case 'thinking':
      return <ThinkingPart text={part.text} isStreaming={part.state === 'streaming'} />;
    case 'tool_call':
      return <ToolCall part={part} />;
    case 'file':
      return <FileChip part={part} hasPreview />;
  }
});

const ENDINGS = {
  cancelled: 'Stopped.',
  expired: 'Nobody decided in time, so this answer has ended.',
} as const;

/** The reason why an answer is not complete, with the Retry button. */
function Ending({ message: { runId, status, error } }: { message: AgentMessage }) {
  const { retry } = useChatActions();
  const canRetry = use(RetryableContext) === runId;
  if (status === 'running' || status === 'completed') return null;
  const button = canRetry && (
    <BusyButton variant="default" leftSection={<IconRefresh size={14} />} act={() => retry(runId)}>
      Retry
    </BusyButton>
  );
  if (status === 'failed') {
    return (
      <Alert role="note" color="red" py="xs" icon={<IconAlertTriangle size={18} />}>
        <Group justify="space-between" gap="xs">
          <Text size="sm">{error?.message ?? 'The answer failed.'}</Text>
          {button}
        </Group>
      </Alert>
    );
  }
  return (
    <Group gap="xs">
      <IconPlayerStop size={14} aria-hidden />
      <Note>{ENDINGS[status]}</Note>
      {button}
    </Group>
  );
}

function Note({ children }: { children: string }) {
  return (
    <Text size="xs" c="dimmed">
      {children}
    </Text>
  );
}
