import { Button, Code, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconChevronDown, IconChevronRight, IconTool } from '@tabler/icons-react';
import type { MessagePart } from '#client';
import { formatDuration } from '../components/format.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { BusyButton } from './busy-button.tsx';
import { useChatActions } from './chat-context.ts';
import classes from './chat.module.css';

type ToolCallPart = Extract<MessagePart, { type: 'tool_call' }>;

const STATES: Record<ToolCallPart['state'], { label: string; color: string }> = {
  waiting: { label: 'Waiting for approval', color: 'orange' },
  running: { label: 'Running', color: 'indigo' },
  completed: { label: 'Completed', color: 'teal' },
  failed: { label: 'Failed', color: 'red' },
  stopped: { label: 'Stopped', color: 'gray' },
};

/** A tool call with its arguments, and the question whether it may run. */
export function ToolCall({ part }: { part: ToolCallPart }) {
  const { toolName, title, toolInput, state, approval, durationMs, summary } = part;
  const isAsked = approval?.state === 'pending';
  const [isOpen, { toggle }] = useDisclosure(false);
  const { label, color } = approval?.state === 'rejected' ? { label: 'Rejected', color: 'red' } : STATES[state];
  const hasInput = toolInput !== null && Object.keys(toolInput).length > 0;
  const hasDetails = !isAsked && (hasInput || isLong(summary));
  return (
    <section
      className={classes.tool}
      data-part="tool"
      data-asked={isAsked || undefined}
      aria-label={`Tool ${toolName}`}
    >
      <Group gap="xs">
        <IconTool size={16} aria-hidden />
        <Text size="sm" fw={600} className={classes.breakable}>
          {title ?? toolName}
        </Text>
        {title !== null && title !== toolName && <Code fz="xs">{toolName}</Code>}
        <StatusBadge color={color}>{label}</StatusBadge>
        {durationMs !== null && (
          <Text span size="xs" c="dimmed">
            {formatDuration(durationMs)}
          </Text>
        )}
        {hasDetails && (
          <Button
            variant="subtle"
            size="compact-xs"
            aria-expanded={isOpen}
            aria-label={`Details of ${toolName}`}
            leftSection={isOpen ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
            onClick={toggle}
          >
            Details
          </Button>
        )}
      </Group>
      {hasInput && (isAsked || isOpen) && <Arguments input={toolInput} />}
      {summary !== null && (
        <Text size="sm" className={classes.summary} data-cut={!isOpen || undefined}>
          {summary}
        </Text>
      )}
      {isAsked && <Question requestId={approval.requestId} toolName={toolName} />}
    </section>
  );
}

/** Whether two lines may not be enough. */
const isLong = (summary: string | null): boolean =>
  summary !== null && (summary.length > 150 || summary.split('\n').length > 2);

function Question({ requestId, toolName }: { requestId: string; toolName: string }) {
  const { decide } = useChatActions();
  return (
    <Group gap="xs" mt="xs">
      <BusyButton act={() => decide(requestId, 'allow_once')} aria-label={`Allow ${toolName}`}>
        Allow
      </BusyButton>
      <BusyButton variant="default" act={() => decide(requestId, 'reject_once')} aria-label={`Reject ${toolName}`}>
        Reject
      </BusyButton>
    </Group>
  );
}

/** Each argument by its name: texts as they are, everything else as JSON. */
function Arguments({ input }: { input: Record<string, unknown> }) {
  return (
    <dl className={classes.arguments} tabIndex={0} aria-label="Arguments">
      {Object.entries(input).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</dd>
        </div>
      ))}
    </dl>
  );
}
