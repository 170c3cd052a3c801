import type { FailureCause } from './failure-cause.ts';
import type { RunError } from './run-errors.ts';

/** An event of a Thread, in the past tense. Stored shapes never change (docs/adr/0001): a change is a new schema version. */
export type ThreadEvent =
  | Fact<'thread.created', ThreadCreated>
  | Fact<'thread.status_entered', StatusEntered>
  | Fact<'thread.archived', Empty>
  | Fact<'thread.unarchived', Empty>
  | Fact<'thread.terminated', Empty>
  | Fact<'thread.title_set', { title: string | null }>
  | Fact<'message.added', { text: string; requestId: string | null; fileIds: string[] }>
  | Fact<'run.queued', RunQueued>
  | Fact<'run.claimed', { dispatch: number; holder: string } & InStreak>
  | Fact<'run.started', { first: boolean }>
  | Fact<'run.waiting', { requests: { requestId: string; toolCallId: string }[] }>
  | Fact<'run.resumed', { dispatch: number }>
  | Fact<'run.requeued', RunRequeued>
  | Fact<'run.completed', { finalOutput: FinalOutput | null; durationMs: number | null }>
  | Fact<'run.failed', { error: RunError; durationMs: number | null } & Caused>
  | Fact<'run.cancelled', { by: string | null; durationMs: number | null }>
  | Fact<'run.expired', { limit: TimeLimit; durationMs: number | null }>
  | Fact<'assistant.text_added', TextDelta>
  | Fact<'assistant.thinking_added', TextDelta>
  | Fact<'assistant.message_added', AssistantMessage>
  | Fact<'tool.confirmation_requested', ToolCall & { requestId: string; destructive?: true }>
  | Fact<
      'tool.confirmation_decided',
      { requestId: string; toolCallId: string; decision: PermissionDecision; by: string }
    >
  | Fact<'tool.started', ToolCall>
  | Fact<'tool.completed', ToolCompleted>
  | Fact<'usage.recorded', TokenUsage>
  | Fact<'file.changed', { fileId: string; action?: 'created' | 'changed' } & NamedFile>
  | Fact<'files.updated', { fileId: string; change: 'attached' | 'detached' | 'deleted' } & NamedFile>;

type Empty = Record<string, never>;

interface Fact<Type extends string, Data> {
  type: Type;
  data: Data;
  /** The Run of the event; null if it belongs to the Thread. */
  runId: string | null;
  /** The fencing token of the claim that wrote the event, or that the reaper ended with it; null if there was no claim. */
  attempt: number | null;
}

export type ThreadEventType = ThreadEvent['type'];
export type EventOf<Type extends ThreadEventType> = Extract<ThreadEvent, { type: Type }>;

/** Shown to callers (docs/spec/agent-threads-api.md#states). */
export type ThreadStatus = 'IDLE' | 'RUNNING' | 'RESCHEDULING' | 'TERMINATED';
export type AgentKind = 'pet' | 'cattle';
export type RunTrigger = 'user_prompt' | 'retry' | 'resume' | 'system';
export type PermissionDecision = 'allow_once' | 'reject_once';
export type TimeLimit = 'queue' | 'work' | 'wait';

/** The callers who can see the Thread besides operators (docs/spec/decisions.md#visibility). */
export interface ThreadOwner {
  /** The person whose token created it, or to whom it is attributed. */
  personId: string | null;
  /** The service token that created it. */
  serviceTokenId: string | null;
}

interface ThreadCreated {
  agentId: string;
  organizationId: string;
  kind: AgentKind;
  userId: string;
  owner: ThreadOwner;
  /** The caller's own reference; omitted if none was given, and by earlier releases. */
  clientExternalRef?: string;
  /** The caller's reference that is unique per token, Agent and user; also omitted if there is none. */
  externalRef?: ExternalRef;
}

/** A caller's own name for a Thread, and the token that gave it. */
export interface ExternalRef {
  value: string;
  tokenId: string;
}

/**
 * The limits of a Run: times in milliseconds (docs/spec/decisions.md#time-limits), and how many workers in a row may be lost.
 * `providerRetryMs`: how long an outage of the model provider is retried; omitted by earlier releases.
 */
export interface RunLimits {
  queueMs: number;
  workMs: number;
  waitMs: number;
  maxLosses: number;
  providerRetryMs?: number;
}

/**
 * Retryable failures of a Run in a row, without a stored step between them: of its model provider, or of other parts. `since`
 * is the time of the first one. `circuit`: the circuit breaker that the Run waits for; omitted if there is none.
 */
export interface FailureStreak {
  of: 'provider' | 'other';
  since: string;
  failures: number;
  circuit?: string;
}

/** Omitted if the Run has no such failures, and by earlier releases. */
interface InStreak {
  streak?: FailureStreak;
}

interface RunQueued {
  trigger: RunTrigger;
  /** The agent version that the Run keeps. */
  agentVersion: number;
  limits: RunLimits;
  /** How long the Run waits before it is enqueued, milliseconds. */
  delayMs: number;
}

/**
 * `voidedStepId`: the model step that this status interrupts. `retryAt`: when the Run is tried again, if that is not immediately.
 * Both are omitted if there is none, and by earlier releases.
 */
interface StatusEntered {
  status: ThreadStatus;
  voidedStepId?: string;
  retryAt?: string;
}

/** `step`: the number of the model step within its claim, from 1; omitted by earlier releases. */
export interface TextDelta {
  text: string;
  step?: number;
}

/** A file as it was when the event happened, so that the log names it even after its deletion; omitted by earlier releases. */
export interface NamedFile {
  name?: string;
  kind?: 'attachment' | 'artifact';
}

export type RequeueReason = 'lease_expired' | 'retryable_failure' | 'handed_over';

/** `cause`: for operators; omitted if it is not known, and by earlier releases. */
interface Caused {
  cause?: FailureCause;
}

interface RunRequeued extends Caused, InStreak {
  dispatch: number;
  reason: RequeueReason;
  losses: number;
  delayMs: number;
}

/** The result of a model step: its text, the tool calls, and data that only its harness reads. */
export interface AssistantMessage {
  text: string;
  toolCalls: ToolCall[];
  /**
   * Data that the harness must send back to its provider with this message, such as signed thinking. Opaque here; omitted if
   * there is none, and by earlier releases.
   */
  continuation?: unknown;
  /** The usage of the step, from which a Run's budget follows; omitted in the same cases. */
  usage?: TokenUsage;
  /** The thinking of the step, for people only; omitted in the same cases. */
  thinking?: string;
  /** The number of the step within its claim, as in its deltas; omitted by earlier releases. */
  step?: number;
  /** The model that answered; omitted if the Agent has no fallback models, and by earlier releases. */
  model?: AnsweringModel;
}

/** One of the models of an Agent. `fallback`: its place in `fallbackModels`, from 1; omitted for the Agent's first model. */
export interface AnsweringModel {
  name: string;
  fallback?: number;
}

/** Tokens of one model step. */
export interface TokenUsage {
  /** All input, cached or not. */
  inputTokens: number;
  outputTokens: number;
  /** The part of the input that the provider had cached; omitted if it does not report it. */
  cachedInputTokens?: number;
}

/** One invocation of a tool. `toolCallId` correlates all its events and is the tool's idempotency key. */
export interface ToolCall {
  toolCallId: string;
  toolName: string;
  /** The tool's title, which people see. */
  title: string;
  toolInput: Record<string, unknown>;
  /** The input as text if it is no JSON object or has an inexact number. Then `toolInput` is empty, and no tool runs. */
  invalidInput?: string;
}

/** The end of a tool call. `summary` is public, at most 2 KiB of UTF-8. `result` is for the model. */
export interface ToolCompleted {
  toolCallId: string;
  toolName: string;
  outcome: 'ok' | 'error' | 'refused' | 'unknown';
  summary: string;
  result: string;
  durationMs: number | null;
  /** Images of the Thread that the model gets with the result; omitted if there are none. */
  fileIds?: string[];
  /** Why the tool server failed, for operators; omitted if it answered, and by earlier releases. */
  cause?: FailureCause;
}

/** The canonical answer of a completed Run. Citation markup is removed and counted. */
export interface FinalOutput {
  text: string;
  warnings: { code: 'unresolved_provider_citation'; count: number }[];
}

/** An event with its place in its stream. Times are RFC 3339 in UTC with milliseconds; ids are upper-case ULIDs. */
export type StoredEvent = ThreadEvent & EventPlace;

/** A stored event of a type that this version does not know (docs/spec/decisions.md#unknown-events). Reads never fail on it. */
export interface UnknownEvent extends EventPlace {
  type: string;
  data: unknown;
  runId: string | null;
  attempt: number | null;
}

export interface EventPlace {
  threadId: string;
  /** 1..n without gaps. */
  version: number;
  id: string;
  occurredAt: string;
  schemaVersion: number;
  /** Whether the event has an entry in the public log. */
  public: boolean;
}
