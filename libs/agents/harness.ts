import {
  RUN_ERRORS,
  type AnsweringModel,
  type AssistantMessage,
  type FailureCause,
  type RunErrorCode,
  type TokenUsage,
  type ToolCompleted,
} from '#domain';
import type { ByteHold } from '#platform';
import type { RunTask } from '#task-pool';
import type { AgentManifest } from './manifest.ts';
import type { ManifestIssue } from './manifest-issues.ts';

/** Something that an agent needs to run now and does not have. */
export interface ReadinessIssue {
  /** For callers: a clause that reveals nothing about the configuration (`a credential is missing`). */
  message: string;
  /** For operators and the log: a sentence that says exactly what is missing. It never contains a secret. */
  detail: string;
}

/**
 * Runs an agent: one model step at a time, and the tools that the steps call. It knows no streams and no queues. The engine stores
 * what it yields, so an interrupted step is requested again.
 */
export interface Harness {
  readonly name: string;
  /**
   * Returns the problems of the harness's own settings with their paths in the manifest. It only reads the manifest, so that an
   * invalid one is refused before it is published. An agent with invalid settings does not run.
   */
  checkSettings(manifest: AgentManifest): ManifestIssue[];
  /** Returns the models that may make the agent's steps, the preferred one first. Default: the steps call no provider. */
  models?(manifest: AgentManifest): readonly ModelCandidate[];
  /** Returns what else the agent lacks to run now. Must be quick, because it is called before each message. */
  readiness(manifest: AgentManifest): Promise<ReadinessIssue[]>;
  /**
   * Returns the tools that a Run's steps may call, with unique names. Called when a claim boots. Throws HarnessError
   * (`tool_server_unavailable`).
   */
  tools(context: RunContext): Promise<readonly Tool[]>;
  /**
   * Makes one model step. Ends with exactly one `message`; without tool calls it is the final one. Throws any error within
   * milliseconds of the signal's abort. Throws HarnessError for every known failure; any other error counts as
   * `harness_crashed`. The output before a throw is void, except if the answer is cut at `tokensLeft`
   * (`token_limit_reached`): no step follows it, and its output stays.
   */
  step(context: StepContext): AsyncIterable<StepEvent>;
  /** Releases connections and processes of tool servers when the process stops. */
  close?(): Promise<void>;
}

/** A model that may make a step. */
export interface ModelCandidate {
  /** The manifest with which `step` calls this model. */
  manifest: AgentManifest;
  /** The id of the provider and key. Runs with the same id wait together while the provider fails (docs/adr/0041). */
  circuit: string;
  /** The model that the message of the step names; undefined if there is only one. */
  model?: AnsweringModel;
}

/** The Run for which a harness or a tool works. */
export interface RunContext {
  agentId: string;
  threadId: string;
  runId: string;
  /** The attempt of the Run, from 1. It distinguishes a repeated step from a new one. */
  attempt: number;
  /** The application's user for whom the Thread was created. */
  userId: string;
  manifest: AgentManifest;
  /** Runs work of unbounded cost in a child process, on behalf of the Run's organization. */
  runTask: RunTask;
  /** Opens a hold on the memory that the Run's organization may use in this process. The caller must release it. */
  openHold: () => ByteHold;
  /** Aborts when the work has to stop for any reason. */
  signal: AbortSignal;
}

export interface StepContext extends RunContext {
  /** Bounded: older messages have only the beginnings of texts, and no continuations and large inputs (docs/choices.md). */
  transcript: readonly TranscriptMessage[];
  /** The tools of `tools` that the agent's policy does not deny. */
  tools: readonly Tool[];
  files: ThreadFiles;
  /** The rest of the Run's tokens (`limits.maxTokens`), at least 1; undefined without a limit. */
  tokensLeft?: number;
  /**
   * Reserves memory of the worker for the bytes that the step reads, until it ends. Throws NoRoom; the step is repeated later
   * then. Must be called before the provider.
   */
  makeRoom: (bytes: number) => void;
}

/**
 * A message of the conversation with a model. Each tool call of an assistant message has a `tool` message before the next
 * assistant message. `stopped`: the user stopped this message, and the text is the visible part of it.
 */
export type TranscriptMessage =
  | { role: 'user'; text: string; fileIds: string[] }
  | ({ role: 'assistant'; stopped?: true } & AssistantMessage)
  | ({ role: 'tool' } & Pick<ToolCompleted, 'toolCallId' | 'toolName' | 'outcome' | 'result' | 'fileIds'>);

export type StepEvent =
  /** A delta of the text. All deltas joined are the text of `message`. */
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  /** Tokens of this step, at most once. */
  | ({ type: 'usage' } & TokenUsage)
  /**
   * `continuation`: JSON that the harness needs with this message in later steps. Opaque to everybody else. `model`: set by the
   * engine.
   */
  | { type: 'message'; text: string; toolCalls: RequestedTool[]; continuation?: unknown; model?: AnsweringModel };

/** The engine assigns the ids of calls, because those of providers are not unique forever. */
export interface RequestedTool {
  toolName: string;
  toolInput: Record<string, unknown>;
  /**
   * What the model wrote instead of a JSON object, or the number in the object that a double cannot hold. `toolInput` is empty
   * then. The call gets an error as its result and is not run.
   */
  invalidInput?: string;
}

export type ToolPolicy = 'allow' | 'ask' | 'deny';

export interface Tool {
  readonly name: string;
  /** The name for people. */
  readonly title: string;
  /** The description for models. */
  readonly description: string;
  /** JSON Schema of its input, an object. For invalid input the model gets an error, and the tool is not run. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** The policy if the agent's manifest has none for it. */
  readonly policy: ToolPolicy;
  /** Whether running it twice with one `toolCallId` has the effect of once. If so, it is repeated after a crash. */
  readonly idempotent: boolean;
  /** Whether it changes nothing. If so, it may run at the same time as others that only read. */
  readonly readOnly?: boolean;
  /** Whether it deletes or overwrites something. People confirm such a call twice. */
  readonly destructive?: boolean;
  /**
   * Runs it once. Returns `isError` for failures that the model can handle. If it throws, the model gets a failure without the
   * message. Throws any error within milliseconds of the signal's abort.
   */
  execute(input: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
}

/** The context of one call. Tool servers get its `userId` and `toolCallId`. */
export interface ToolContext extends RunContext {
  /** The idempotency key of the call. */
  toolCallId: string;
  files: ToolFiles;
  /** Reserves memory of the worker for the bytes that the call reads, until it ends. Throws NoRoom. */
  makeRoom: (bytes: number) => void;
  /**
   * Saves a file of the agent. It belongs to the Thread once the tool's result is stored. `mimeType` counts if neither its first
   * bytes nor its name determine the type.
   */
  saveArtifact: (artifact: { name: string; mimeType: string | null; bytes: Uint8Array }) => Promise<{ fileId: string }>;
}

export interface ToolResult {
  text: string;
  isError: boolean;
  /** Files of the Thread that the model is shown with the text, if it takes their type. */
  fileIds?: string[];
  /** Why the call failed; stored for operators. */
  cause?: FailureCause;
}

/** A file as an agent sees it. */
export interface FolderFile {
  fileId: string;
  /** Relative, with `/` between its parts, none of them `.` or `..`. */
  path: string;
  mimeType: string | null;
  /** Bytes. */
  size: number;
  /** True for files that callers attached (`attachments/`) or tools saved (`artifacts/`). */
  readOnly: boolean;
}

/**
 * The files of a Thread: its folder (that of its agent, for a `pet`), its attachments, and what its tools saved. All methods
 * throw HarnessError (`storage_unavailable`) if the storage cannot be read now.
 */
export interface ThreadFiles {
  /** Returns all files, sorted by path. */
  list(): Promise<readonly FolderFile[]>;
  /**
   * Returns the current bytes, or those from `start` to `end` (inclusive). Opens the file when the bytes are read. Throws
   * FileRefused if the file was deleted.
   */
  read(file: FolderFile, range?: { start: number; end: number }): Promise<AsyncIterable<Uint8Array>>;
}

/**
 * The files for a tool call, which may change the folder. The call sees the folder as of its first access. Its changes are
 * committed with its result, all or none. They are dropped if the result is an error, or if another call has changed one of the
 * paths meanwhile; that conflict is then the result. So a tool that does nothing else is idempotent.
 */
export interface ToolFiles extends ThreadFiles {
  /** Writes a whole file, and replaces an existing one. Throws FileRefused. */
  write(path: string, bytes: Uint8Array): Promise<{ fileId: string }>;
  /** Throws FileRefused. */
  remove(path: string): Promise<void>;
}

/** Thrown if an operation on a file is not possible. `message` is a sentence for the model that says why. */
export class FileRefused extends Error {
  override name = 'FileRefused';
}

/** Thrown if the worker has no memory for the bytes to read. `message` is for the model. */
export class NoRoom extends Error {
  override name = 'NoRoom';

  /** The bytes that are needed; 0 if waiting for them was in vain. */
  constructor(readonly bytes: number) {
    super('Too much is being read at once; try again.');
  }
}

/** A failure with a code of the Run error catalogue. `report` is stored for operators, `cause` is for the log. */
export class HarnessError extends Error {
  override name = 'HarnessError';

  constructor(
    readonly code: RunErrorCode,
    /** `retryAfterMs`: the delay that the provider asked for. `usage`: the known usage of an answer that was cut. */
    readonly more: { retryAfterMs?: number; cause?: unknown; report?: FailureCause; usage?: TokenUsage } = {},
  ) {
    super(RUN_ERRORS[code].message, { cause: more.cause });
  }
}

/** The harnesses of this process, by name. */
export type Harnesses = ReadonlyMap<string, Harness>;

/** Throws if two harnesses have one name, because a process must not start half-wired. */
export function harnessesByName(harnesses: readonly Harness[]): Harnesses {
  const byName = new Map(harnesses.map((harness) => [harness.name, harness]));
  if (byName.size < harnesses.length) throw new Error('Two harnesses have the same name.');
  return byName;
}
