import { useId, useRef } from 'react';
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

/** A tool call with its arguments. While it waits for approval, it has the buttons Allow and Reject. */
export function ToolCall({ part }: { part: ToolCallPart }) {
  const { toolInput, approval } = part;
  const toolName = withoutDirections(part.toolName);
  const summary = part.summary === null ? null : withoutDirections(part.summary);
  const frame = useRef<HTMLDivElement>(null);
  const argumentsId = useId();
  const isAsked = approval?.state === 'pending';
  const [isOpen, { toggle }] = useDisclosure(false);
  const hasInput = toolInput !== null && Object.keys(toolInput).length > 0;
  const hasDetails = !isAsked && (hasInput || isLong(summary));
  return (
    <div
      ref={frame}
      // Takes the focus when its buttons are removed after a decision.
      tabIndex={-1}
      role="group"
      className={classes.tool}
      data-part="tool"
      data-asked={isAsked || undefined}
      aria-label={`Tool ${toolName}`}
    >
      <Head {...{ part, toolName }} details={hasDetails ? { isOpen, toggle } : null} />
      {hasInput && (isAsked || isOpen) && <Arguments id={argumentsId} input={toolInput} />}
      {summary !== null && (
        <Text size="sm" className={classes.summary} data-cut={(hasDetails && !isOpen) || undefined}>
          {summary}
        </Text>
      )}
      {isAsked && (
        <Question
          requestId={approval.requestId}
          toolName={toolName}
          describedBy={argumentsId}
          onDecided={() => keepFocus(frame.current)}
        />
      )}
    </div>
  );
}

interface HeadProps {
  part: ToolCallPart;
  toolName: string;
  /** Null if there are no details. */
  details: { isOpen: boolean; toggle: () => void } | null;
}

function Head({ part, toolName, details }: HeadProps) {
  const title = withoutDirections(part.title ?? part.toolName);
  const { label, color } = toolState(part);
  const { durationMs } = part;
  return (
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
      {details && (
        <Button
          variant="subtle"
          size="compact-xs"
          aria-expanded={details.isOpen}
          aria-label={`Details of ${toolName}`}
          leftSection={details.isOpen ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          onClick={details.toggle}
        >
          Details
        </Button>
      )}
    </Group>
  );
}

/** Gives the focus to the frame if it was on a button that is gone. */
function keepFocus(frame: HTMLElement | null): void {
  const { activeElement, body } = document;
  if (activeElement === body || frame?.contains(activeElement)) frame?.focus();
}

/** Whether the summary may need more than two lines. */
const isLong = (summary: string | null): boolean =>
  summary !== null && (summary.length > 150 || summary.split('\n').length > 2);

interface QuestionProps {
  requestId: string;
  toolName: string;
  /** The element id of the arguments. They tell calls apart if several of one tool wait for approval. */
  describedBy: string;
  onDecided: () => void;
}

function Question({ requestId, toolName, describedBy, onDecided }: QuestionProps) {
  const { decide } = useChatActions();
  const choose = (decision: Decision) => () => decide(requestId, decision).then(onDecided);
  return (
    <Group gap="xs" mt="xs">
      <BusyButton aria-describedby={describedBy} act={choose('allow_once')} aria-label={`Allow ${toolName}`}>
        Allow
      </BusyButton>
      <BusyButton
        variant="default"
        aria-describedby={describedBy}
        act={choose('reject_once')}
        aria-label={`Reject ${toolName}`}
      >
        Reject
      </BusyButton>
    </Group>
  );
}

/** The arguments by name. Strings are shown unchanged, other values as JSON. */
function Arguments({ id, input }: { id: string; input: Record<string, unknown> }) {
  return (
    <dl id={id} className={classes.arguments} tabIndex={0} aria-label="Arguments">
      {Object.entries(input).map(([name, value]) => (
        <div key={name}>
          <dt>{withoutDirections(name)}</dt>
          <dd>{withoutDirections(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</dd>
        </div>
      ))}
    </dl>
  );
}
