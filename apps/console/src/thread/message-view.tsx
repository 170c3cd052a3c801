import { memo, useState, type ReactNode } from 'react';
import { Anchor, Code, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Message, MessagePart } from '#client';
import { formatDuration, formatTime, shortenId } from '../components/format.ts';
import { JsonBlock } from '../components/json-block.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { toolState } from '../components/tool-state.ts';
import { DownloadLink } from './download-link.tsx';
import classes from './message-view.module.css';

type AgentMessage = Extract<Message, { role: 'agent' }>;
type PartOf<Type extends MessagePart['type']> = Extract<MessagePart, { type: Type }>;

/** One message of the conversation. Rendered again only if it has changed, because a log can have thousands. */
export const MessageView = memo(function MessageView({ message }: { message: Message }) {
  return (
    <article className={classes.message} data-role={message.role}>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Group gap={6}>
          <Text size="xs" fw={600}>
            {message.role === 'user' ? 'User' : 'Agent'}
          </Text>
          {message.role === 'agent' && <RunOf message={message} />}
        </Group>
        <Clock at={message.createdAt} />
      </Group>
      {message.parts.map((part, index) => (
        <PartView key={keyOf(part, index)} part={part} />
      ))}
      {message.role === 'agent' && message.error && (
        <Text size="sm" c="red" className={classes.text}>
          {message.error.message}
        </Text>
      )}
    </article>
  );
});

function RunOf({ message: { runId, status, parts } }: { message: AgentMessage }) {
  const isWaiting = parts.some((part) => part.type === 'tool_call' && part.state === 'waiting');
  return (
    <>
      <Anchor component={Link} href={`/runs/${runId}`} size="xs" underline="always" title={runId}>
        Run {shortenId(runId)}
      </Anchor>
      <RunStatus status={isWaiting ? 'waiting_input' : status} />
    </>
  );
}

/** A text can be inserted before others, so its place in the message does not identify it. */
function keyOf(part: MessagePart, index: number): string {
  if (part.type === 'tool_call') return part.toolCallId;
  if (part.type === 'file') return part.fileId;
  return `${part.type} ${part.stepId ?? index}`;
}

const PartView = memo(function PartView({ part }: { part: MessagePart }) {
  switch (part.type) {
    case 'text':
    case 'thinking':
      return <TextView part={part} />;
    case 'tool_call':
      return <ToolCall part={part} />;
    case 'file':
      return <FileView part={part} />;
  }
});

function TextView({ part: { type, text, state } }: { part: PartOf<'text' | 'thinking'> }) {
  const note = state === 'streaming' && <StatusBadge color="indigo">Streaming</StatusBadge>;
  return (
    <Part look={type} title={type === 'thinking' && 'Thinking'} note={note}>
      {text}
    </Part>
  );
}

function ToolCall({ part }: { part: PartOf<'tool_call'> }) {
  const { toolName, title, toolInput, state, durationMs, summary } = part;
  const { label, color } = toolState(part);
  return (
    <Part
      look="tool"
      title={title ?? toolName}
      note={
        <>
          {title !== null && title !== toolName && <Code fz="xs">{toolName}</Code>}
          <StatusBadge color={color}>{label}</StatusBadge>
          {durationMs !== null && (
            <Text span size="xs" c="dimmed">
              {formatDuration(durationMs)}
            </Text>
          )}
        </>
      }
    >
      {toolInput !== null && Object.keys(toolInput).length > 0 && (
        <ToolInput key={state === 'waiting' ? 'waiting' : 'decided'} part={part} isOpenAtFirst={state === 'waiting'} />
      )}
      {summary}
    </Part>
  );
}

/** Rendered only while it is open, because a log can have thousands. */
function ToolInput({ part, isOpenAtFirst }: { part: PartOf<'tool_call'>; isOpenAtFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <details className={classes.details} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Input</summary>
      {isOpen && <JsonBlock value={part.toolInput} label={`Input of ${part.toolName}`} />}
    </details>
  );
}

export function FileView({ part: { fileId, name, action } }: { part: PartOf<'file'> }) {
  return (
    <Text size="xs" c="dimmed" className={classes.text} data-part="file">
      {`File ${action ?? 'changed'}: `}
      <DownloadLink file={{ id: fileId, name: name ?? fileId }} size="xs" underline="always">
        {name ?? shortenId(fileId)}
      </DownloadLink>
    </Text>
  );
}

interface PartProps {
  look: 'text' | 'thinking' | 'tool';
  title: string | false;
  note: ReactNode;
  children: ReactNode;
}

function Part({ look, title, note, children }: PartProps) {
  return (
    <div className={classes.part} data-part={look}>
      {(title || note) && (
        <Group gap={6}>
          {title && (
            <Text size="xs" fw={600}>
              {title}
            </Text>
          )}
          {note}
        </Group>
      )}
      <Text component="div" size="sm" className={classes.text}>
        {children}
      </Text>
    </div>
  );
}

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

function Clock({ at }: { at: string }) {
  return (
    <Text component="time" dateTime={at} size="xs" c="dimmed" title={formatTime(at)} className={classes.clock}>
      {clock.format(new Date(at))}
    </Text>
  );
}
