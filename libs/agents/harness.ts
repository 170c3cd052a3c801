import { RUN_ERRORS, type AssistantMessage, type RunErrorCode, type TokenUsage, type ToolCompleted } from '#domain';
import type { ByteHold } from '#platform';
import type { RunTask } from '#task-pool';
import type { AgentManifest } from './manifest.ts';
import type { ManifestIssue } from './manifest-issues.ts';

/** Something without which an agent cannot run now. */
export interface Lack {
  /** For callers: a clause that tells nothing of the configuration (`a credential is missing`). */
  message: string;
  /** For operators and the log: a sentence that says exactly what is missing. Never a secret itself. */
  detail: string;
}

/**
 * What runs an agent: one model step at a time, and the tools that the steps ask for. It knows nothing of streams and
 * queues; what it yields becomes durable elsewhere, so a step that was cut off is simply asked for again.
 */
export interface Harness {
  readonly name: string;
  /**
   * What is wrong with the harness's own settings, by the path in the manifest; nothing when they are right. From the
   * manifest alone, so that it can be refused before it is published. An agent with wrong settings does not run.
   */
  checkSettings(manifest: AgentManifest): ManifestIssue[];
  /** What else an agent with this manifest lacks to run now, nothing when it can. Asked before each message: quick. */
  readiness(manifest: AgentManifest): Promise<Lack[]>;
  /**
   * The tools that a Run's steps may ask for, each name once. Asked when a claim boots. Throws HarnessError
   * (`tool_server_unavailable`).
   */
  tools(context: RunContext): Promise<readonly Tool[]>;
  /**
   * One model step. Ends with exactly one `message`; without tool calls it is the final one. Stops within milliseconds of
   * the signal's abort, by whatever throw. Throws HarnessError for every failure it knows; anything else that it throws
   * counts as `harness_crashed`. The output before a throw is void. The exception is an answer that is cut at
   * `tokensLeft` (`token_limit_reached`): no step follows it, and its output stays.
   */
  step(context: StepContext): AsyncIterable<StepEvent>;
  /** Lets go of what it holds for Runs (connections, processes of tool servers): the process stops. */
  close?(): Promise<void>;
}

/** The Run that something is done for. */
export interface RunContext {
  agentId: string;
  threadId: string;
  runId: string;
  /** Of the Run, 1 for the first: a repeated step can be told from a new one. */
  attempt: number;
  /** The application's user, as the Thread was made for. */
  userId: string;
  manifest: AgentManifest;
  /** Runs work that may run away in a child process, on behalf of the Run's organization. */
  runTask: RunTask;
  /** Opens a hold of the memory that the Run's organization may use in this process. Whoever opens it releases it. */
  openHold: () => ByteHold;
  /** Aborts when the work has to stop, for whatever reason. */
  signal: AbortSignal;
}

export interface StepContext extends RunContext {
  /** Bounded: of what is long ago, the beginnings of texts, without continuations and large inputs (docs/choices.md). */
  transcript: readonly TranscriptMessage[];
  /** Those of `tools` that the agent's policy does not deny. */
  tools: readonly Tool[];
  files: ThreadFiles;
  /** The rest of the Run's tokens (`limits.maxTokens`), at least 1; undefined without a limit. */
  tokensLeft?: number;
  /**
   * Makes room in the worker's memory for so many bytes that the step reads, until it ends. Throws NoRoom: then the step is
   * made again later. Called before the provider is.
   */
  makeRoom: (bytes: number) => void;
}

/**
 * The conversation as models know it. Every tool call of an assistant message has its `tool` message before the next. `stopped`:
 * the user stopped this message, and its text is as much of it as was visible.
 */
export type TranscriptMessage =
  | { role: 'user'; text: string; fileIds: string[] }
  | ({ role: 'assistant'; stopped?: true } & AssistantMessage)
  | ({ role: 'tool' } & Pick<ToolCompleted, 'toolCallId' | 'toolName' | 'outcome' | 'result' | 'fileIds'>);

export type StepEvent =
  /** A piece of the message's text; all pieces joined are the text of `message`. */
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  /** Tokens of this step, at most once. */
  | ({ type: 'usage' } & TokenUsage)
  /** `continuation`: what the harness wants back with this message in later steps, JSON; nobody else looks into it. */
  | { type: 'message'; text: string; toolCalls: RequestedTool[]; continuation?: unknown };

/** Ids are given outside: they are unique for ever, whatever a provider calls its calls. */
export interface RequestedTool {
  toolName: string;
  toolInput: Record<string, unknown>;
  /**
   * What the model wrote instead of a JSON object, or the number in its object that a double cannot hold. `toolInput` is empty
   * then, and the call is answered, not run.
   */
  invalidInput?: string;
}

export type ToolPolicy = 'allow' | 'ask' | 'deny';

export interface Tool {
  readonly name: string;
  /** What people see. */
  readonly title: string;
  /** What models are told of it. */
  readonly description: string;
  /** JSON Schema of its input, an object. Input that does not fit is answered to the model and never executed. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Whether it may run where the agent's manifest says nothing. */
  readonly policy: ToolPolicy;
  /** Whether running it twice under one `toolCallId` is the same as once: then it is repeated after a crash. */
  readonly idempotent: boolean;
  /** Whether it changes nothing, anywhere: then it may run at the same time as others that only read. */
  readonly readOnly?: boolean;
  /**
   * Runs it once. What the model can deal with is answered with `isError`; a throw is reported to the model as a failure
   * without its message. Stops within milliseconds of the signal's abort, by whatever throw.
   */
  execute(input: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
}

/** `userId` and `toolCallId` are delegated to tool servers with each call. */
export interface ToolContext extends RunContext {
  /** The idempotency key of the call. */
  toolCallId: string;
  files: ToolFiles;
  /** Makes room in the worker's memory for so many bytes that the call reads, until it ends. Throws NoRoom. */
  makeRoom: (bytes: number) => void;
  /**
   * Keeps a file of the agent; it is the Thread's once the tool's result is stored. `mimeType` counts where neither its first
   * bytes nor its name tell.
   */
  saveArtifact: (artifact: { name: string; mimeType: string | null; bytes: Uint8Array }) => Promise<{ fileId: string }>;
}

export interface ToolResult {
  text: string;
  isError: boolean;
  /** Files of the Thread that the model is shown with the text, if it takes their type. */
  fileIds?: string[];
}

/** A file as an agent sees it. */
export interface FolderFile {
  fileId: string;
  /** Relative, with `/` between its parts, none of them `.` or `..`. */
  path: string;
  mimeType: string | null;
  /** Bytes. */
  size: number;
  /** What callers attached (below `attachments/`), and what tools left (below `artifacts/`). */
  readOnly: boolean;
}

/**
 * The files of a Thread: its folder (that of its agent, for a `pet`), what was attached to it and what its tools left.
 * Everything throws HarnessError (`storage_unavailable`) where it cannot be read now.
 */
export interface ThreadFiles {
  /** All of them, by path. */
  list(): Promise<readonly FolderFile[]>;
  /**
   * The bytes as they are now, from `start` to `end` (inclusive) where given; nothing is open before they are read. Throws
   * FileRefused where the file is gone.
   */
  read(file: FolderFile, range?: { start: number; end: number }): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * The same for a tool call, which may change the folder. It has the folder as it was when it first looked. Its changes become
 * true with its result, all or none: not if that is an error, and not if one of the paths has been changed meanwhile by
 * another call, which is then the result. So a tool that does nothing else is idempotent.
 */
export interface ToolFiles extends ThreadFiles {
  /** Writes a whole file, new or over the one that is there. Throws FileRefused. */
  write(path: string, bytes: Uint8Array): Promise<{ fileId: string }>;
  /** Throws FileRefused. */
  remove(path: string): Promise<void>;
}

/** What cannot be done with a file. `message` is for the model: a sentence that says why. */
export class FileRefused extends Error {
  override name = 'FileRefused';
}

/** There is no room in the worker's memory for what is to be read. `message` is for the model. */
export class NoRoom extends Error {
  override name = 'NoRoom';

  /** Bytes that there has to be room for; 0 if that has been waited for in vain. */
  constructor(readonly bytes: number) {
    super('Too much is being read at once; try again.');
  }
}

/** A failure that the catalogue of Run errors knows. Only its code gets out; `cause` is for the log. */
export class HarnessError extends Error {
  override name = 'HarnessError';

  constructor(
    readonly code: RunErrorCode,
    /** `retryAfterMs`: what the provider asked for, milliseconds. `usage`: of an answer that was cut, as far as it is known. */
    readonly more: { retryAfterMs?: number; cause?: unknown; usage?: TokenUsage } = {},
  ) {
    super(RUN_ERRORS[code].message, { cause: more.cause });
  }
}

/** The harnesses of this process, by name. */
export type Harnesses = ReadonlyMap<string, Harness>;

/** Throws when two have one name: a process must not start half-wired. */
export function harnessesByName(harnesses: readonly Harness[]): Harnesses {
  const byName = new Map(harnesses.map((harness) => [harness.name, harness]));
  if (byName.size < harnesses.length) throw new Error('Two harnesses have the same name.');
  return byName;
}
