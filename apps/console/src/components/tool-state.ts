import type { MessagePart } from '#client';

type ToolCallPart = Extract<MessagePart, { type: 'tool_call' }>;

interface Look {
  label: string;
  color: string;
}

const LOOKS: Record<ToolCallPart['state'], Look> = {
  waiting: { label: 'Waiting for approval', color: 'orange' },
  running: { label: 'Running', color: 'indigo' },
  completed: { label: 'Completed', color: 'teal' },
  failed: { label: 'Failed', color: 'red' },
  stopped: { label: 'Stopped', color: 'gray' },
};

/** Returns how the state of a tool call is shown. */
export const toolState = ({ state, approval }: ToolCallPart): Look =>
  approval?.state === 'rejected' ? { label: 'Rejected', color: 'red' } : LOOKS[state];
