import type {
  AgentKind,
  ExternalRef,
  FinalOutput,
  NamedFile,
  PermissionDecision,
  RunLimits,
  TextDelta,
  ThreadEvent,
  ThreadOwner,
  TimeLimit,
} from './events.ts';
import { EVENT_TYPES, type EventTypesWith } from './event-types.ts';
import type { FailureCause } from './failure-cause.ts';
import type { CircuitTurn } from './retry-policy.ts';
import type { RunError } from './run-errors.ts';

/** A command to a Thread. The caller supplies the ids of new objects, and passes the time to `decide`. */
export type Command = CallerCommand | WorkerCommand | ServiceCommand;

export type CallerCommand =
  | CreateThread
  | AddMessage
  | { type: 'decide_permission'; requestId: string; decision: PermissionDecision; by: string }
  /** Null means the current Run. The state has no ended Runs, so the caller of `decide` supplies them. */
  | { type: 'interrupt'; runId: string | null; by: string | null }
  | RetryRun
  | { type: 'archive' }
  | { type: 'unarchive' }
  /** Null removes the title; the next message sets one. */
  | { type: 'set_title'; title: string | null }
  | ({ type: 'attach_file' | 'detach_file' | 'delete_file'; fileId: string } & NamedFile);

export interface CreateThread {
  type: 'create_thread';
  agentId: string;
  organizationId: string;
  kind: AgentKind;
  userId: string;
  owner: ThreadOwner;
  clientExternalRef?: string | undefined;
  externalRef?: ExternalRef | undefined;
}

/** The id of a new Run, and the values that it takes from the live version of its agent. */
export interface NewRun {
  runId: string;
  agentVersion: number;
  limits: RunLimits;
}

export interface AddMessage {
  type: 'add_message';
  text: string;
  requestId: string | null;
  /** Drafts to attach. The message mounts them, and the files that were attached since the last message. */
  fileIds: string[];
  /** The known names of these drafts, by their ids. */
  fileNames?: ReadonlyMap<string, string> | undefined;
  run: NewRun;
  /** The effect while a Run is active (docs/spec/decisions.md#when-busy). */
  whenBusy: 'reject' | 'enqueue' | 'interrupt';
  by: string | null;
}

export interface RetryRun {
  type: 'retry_run';
  runId: string;
  run: NewRun;
  /** Whether a Run whose error is not retryable may be retried, because an operator has removed the cause. Default: no. */
  isRepaired?: boolean;
}

/** Commands of workers. The holder of a claim proves it by `attempt`, the fencing token. */
export type WorkerCommand =
  | { type: 'claim_run'; runId: string; dispatch: number; holder: string }
  | (Claimed & { type: 'start_run' })
  | (Claimed & { type: 'record'; facts: RecordedFact[] })
  | (Claimed & { type: 'wait_for_decisions'; requests: { requestId: string; toolCallId: string }[] })
  | (Claimed & { type: 'complete_run'; finalOutput: FinalOutput | null })
  | (Claimed & FailRun & OpenStep)
  /** `delayMs`: how long the Run then waits before it is enqueued. Default: 0. */
  | (Claimed & { type: 'hand_over_run'; delayMs?: number } & OpenStep);

interface FailRun {
  type: 'fail_run';
  error: RunError;
  jitter: number;
  retryAfterMs?: number;
  turn?: CircuitTurn | undefined;
  cause?: FailureCause | undefined;
}

export interface Claimed {
  runId: string;
  attempt: number;
}

/** The model step that a requeue voids: it has stored text and no stored message. Undefined if there is none. */
export interface OpenStep {
  openStep?: number | undefined;
}

/** Returns the step that is open after the facts; `open` is the one that was open before them. */
export function openStepAfter(facts: readonly Pick<ThreadEvent, 'type' | 'data'>[], open?: number): number | undefined {
  for (const { type, data } of facts) {
    const { openStep } = EVENT_TYPES[type];
    if (openStep !== 'keeps') open = openStep === 'sets' ? (data as TextDelta).step : undefined;
  }
  return open;
}

/** A fact of a step. It is stored unchanged, under the run id and attempt of the claim. */
export type RecordedFact = Pick<Extract<ThreadEvent, { type: EventTypesWith<'isRecorded'> }>, 'type' | 'data'>;

/** Commands of the background loops and of operators. */
export type ServiceCommand =
  /** The lease of this attempt has expired. The append checks this again by the database clock. */
  | (Claimed & { type: 'reclaim_run'; jitter: number; cause?: FailureCause } & OpenStep)
  | { type: 'expire_run'; runId: string; limit: TimeLimit; dispatch: number; attempt: number }
  | { type: 'terminate_thread' };

/** Returns a command to attach a file, with its name for the log if it is known. */
export function attachFile(fileId: string, name?: string): CallerCommand {
  return { type: 'attach_file', fileId, ...(name === undefined ? {} : { name, kind: 'attachment' }) };
}
