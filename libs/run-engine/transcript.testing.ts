import type { PermissionDecision, ToolCompleted } from '#domain';
import type { TranscriptEvent } from './transcript.ts';

/** Short constructors of transcript events for specs. */

export const call = (toolCallId: string, toolName = 'free') => ({
  toolCallId,
  toolName,
  title: toolName,
  toolInput: {},
});

export function said(text: string, runId = 'A'): TranscriptEvent {
  return { type: 'message.added', data: { text, requestId: null, fileIds: [] }, runId, attempt: null };
}

export function answered(text: string, toolCalls: ReturnType<typeof call>[] = [], runId = 'A'): TranscriptEvent {
  return { type: 'assistant.message_added', data: { text, toolCalls }, runId, attempt: 1 };
}

export function started(toolCallId: string, toolName = 'free', runId = 'A'): TranscriptEvent {
  return { type: 'tool.started', data: call(toolCallId, toolName), runId, attempt: 1 };
}

export function completed(
  toolCallId: string,
  { outcome = 'ok', runId = 'A' }: { outcome?: ToolCompleted['outcome']; runId?: string } = {},
): TranscriptEvent {
  const data = { toolCallId, toolName: 'free', outcome, result: `result of ${toolCallId}`, durationMs: 1 };
  return { type: 'tool.completed', data, runId, attempt: 1 };
}

export function stopped(text: string, runId = 'A'): TranscriptEvent {
  return { type: 'run.cancelled', data: { text }, runId, attempt: null };
}

export function decided(toolCallId: string, decision: PermissionDecision, runId = 'A'): TranscriptEvent {
  const data = { requestId: `request of ${toolCallId}`, toolCallId, decision, by: 'someone' };
  return { type: 'tool.confirmation_decided', data, runId, attempt: null };
}
