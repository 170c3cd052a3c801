import { useRef } from 'react';
import { Button, Code, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconChevronDown, IconChevronRight, IconTool } from '@tabler/icons-react';
import type { Decision, MessagePart } from '#client';
import { formatDuration } from '../components/format.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { toolState } from '../components/tool-state.ts';
import { BusyButton } from './busy-button.tsx';
import { useChatActions } from './chat-context.ts';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';

type ToolCallPart = Extract<MessagePart, { type: 'tool_call' }>;

/** A tool call with its arguments, and the question whether it may run. */
export function ToolCall({ part }: { part: ToolCallPart }) {
  const { toolInput, approval, durationMs } = part;
  const toolName = withoutDirections(part.toolName);
  const title = withoutDirections(part.title ?? part.toolName);
  const summary = part.summary === null ? null : withoutDirections(part.summary);
  const frame = useRef<HTMLDivElement>(null);
  const isAsked = approval?.state === 'pending';
  const [isOpen, { toggle }] = useDisclosure(false);
  const { label, color } = toolState(part);
  const hasInput = toolInput !== null && Object.keys(toolInput).length > 0;
  const hasDetails = !isAsked && (hasInput || isLong(summary));
  return (
    <div
      ref={frame}
      // Has the focus when the buttons in it are gone.
      tabIndex={-1}
      role="group"
      className={classes.tool}
      data-part="tool"
      data-asked={isAsked || undefined}
      aria-label={`Tool ${toolName}`}
    >
      <Group gap="xs">
        <IconTool size={16} aria-hidden />
        <Text size="sm" fw={600} className={classes.breakable}>
          {title}
        </Text>
        {title !== toolName && <Code fz="xs">{toolName}</Code>}
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
        <Text size="sm" className={classes.summary} data-cut={(hasDetails && !isOpen) || undefined}>
          {summary}
        </Text>
      )}
      {isAsked && (
        <Question requestId={approval.requestId} toolName={toolName} onDecided={() => frame.current?.focus()} />
      )}
    </div>
  );
}

/** Whether two lines may not be enough. */
const isLong = (summary: string | null): boolean =>
  summary !== null && (summary.length > 150 || summary.split('\n').length > 2);

interface QuestionProps {
  requestId: string;
  toolName: string;
  onDecided: () => void;
}

function Question({ requestId, toolName, onDecided }: QuestionProps) {
  const { decide } = useChatActions();
  const choose = (decision: Decision) => () => decide(requestId, decision).then(onDecided);
  return (
    <Group gap="xs" mt="xs">
      <BusyButton act={choose('allow_once')} aria-label={`Allow ${toolName}`}>
        Allow
      </BusyButton>
      <BusyButton variant="default" act={choose('reject_once')} aria-label={`Reject ${toolName}`}>
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
          <dt>{withoutDirections(name)}</dt>
          <dd>{withoutDirections(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</dd>
        </div>
      ))}
    </dl>
  );
}
