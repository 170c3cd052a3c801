import type { TranscriptMessage } from '#agents';

/** What a message asks of the model: in the first step it says half of the pieces and uses the tools, then the rest. */
export interface Script {
  pieces: number;
  /** Before each piece, milliseconds. */
  pauseMs: number;
  tools: readonly ToolName[];
}

/** `note` needs permission; only `lookup` is idempotent. */
export type ToolName = 'note' | 'act' | 'lookup';

export const scriptText = (name: string, { pieces, pauseMs, tools }: Script): string =>
  `${name}: pieces=${pieces} pause=${pauseMs} tools=${tools.join(',')}`;

/** What a worker sends; who it is, so that a test can kill it. */
interface Sender {
  threadId: string;
  runId: string;
  pid: number;
}
export type StepRequest = Sender & { attempt: number; transcript: readonly TranscriptMessage[] };
export type ToolRequest = Sender & { toolCallId: string };

/** A stop of the work on a Run by its process. */
export interface WorkStop {
  runId: string;
  pid: number;
  /** When the last complete turn of its event loop before the stop ended, by its own `Date.now()`. */
  lastTurnAt: number;
  /** When the call was stopped, by the same clock. A process that was not paused stops soon after its last turn. */
  stoppedAt: number;
}

export interface Call extends Sender {
  /** By Date.now(); `closedAt` is null while the connection is open. */
  openedAt: number;
  closedAt: number | null;
}

export interface ModelCall extends Call {
  attempt: number;
  /** 0 for the first of its message. */
  step: number;
  /** The message that it answers. */
  message: string;
  /** What it was told of the tools of this message. */
  told: Extract<TranscriptMessage, { role: 'tool' }>[];
  /** All that it would say; no two calls say the same. */
  text: string;
}

export interface ToolUse extends Call {
  toolCallId: string;
  toolName: ToolName;
  tookEffect: boolean;
}
