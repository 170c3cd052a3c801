// Imports nothing, so that the client package and the console can bundle it.

/** A log entry with its optional fields (`extended=true`), as far as messages need it. */
export interface MessageEntry {
  id: string;
  type: string;
  occurredAt: string;
  runId: string | null;
  status: string;
  content: string;
  durationMs: number | null;
  toolCallId?: string | undefined;
  toolName?: string | undefined;
  toolInput?: Record<string, unknown> | undefined;
  title?: string | undefined;
  name?: string | undefined;
  kind?: 'attachment' | 'artifact' | undefined;
  action?: FilePart['action'] | undefined;
  stepId?: string | undefined;
  voidedStepId?: string | undefined;
  fileIds?: string[] | undefined;
  error?: { code: string; retryable: boolean } | undefined;
  requestId?: string | undefined;
  decision?: string | undefined;
}

/** A message of the user, or the Agent's answer: all steps of one Run. */
export type Message = UserMessage | AgentMessage;
export type MessagePart = TextPart | ToolCallPart | FilePart;

export interface UserMessage {
  /** The id of its log entry. */
  id: string;
  role: 'user';
  /** The Run that it starts. */
  runId: string | null;
  createdAt: string;
  parts: readonly MessagePart[];
}

export interface AgentMessage {
  /** The id of its Run. */
  id: string;
  role: 'agent';
  runId: string;
  createdAt: string;
  /** In the order of the log. A step has at most one thinking and one text, in this order. A file appears once. */
  parts: readonly MessagePart[];
  /** `running`, also while it waits for a person, or how its Run ended. */
  status: 'running' | 'completed' | 'failed' | 'cancelled' | 'expired';
  /** The error of a failed Run; else null. */
  error: MessageError | null;
  /** Whether earlier parts are left out, because the message is too large. */
  truncated?: boolean | undefined;
}

/** `code` and `retryable` are null if they are not known. */
export interface MessageError {
  code: string | null;
  message: string;
  retryable: boolean | null;
}

export interface TextPart {
  type: 'text' | 'thinking';
  text: string;
  /** `streaming` while the step may add text. */
  state: 'streaming' | 'done';
  /** The step that wrote it; absent in messages of the user and of earlier releases. */
  stepId?: string | undefined;
}

export interface ToolCallPart {
  type: 'tool_call';
  toolCallId: string;
  toolName: string;
  title: string | null;
  /** Null if the call was rejected before it could start. */
  toolInput: Record<string, unknown> | null;
  /** `waiting`: for a decision. `stopped`: its Run ended before the call did; the call may have taken effect. */
  state: 'waiting' | 'running' | 'completed' | 'failed' | 'stopped';
  summary: string | null;
  durationMs: number | null;
  /** Null if no one was asked. */
  approval: { requestId: string; state: 'pending' | 'allowed' | 'rejected' | 'withdrawn' } | null;
}

export interface FilePart {
  type: 'file';
  fileId: string;
  /** This and the next two are null if they are not known. */
  name: string | null;
  kind: 'attachment' | 'artifact' | null;
  action: 'created' | 'changed' | 'attached' | 'detached' | 'deleted' | null;
}

export interface ThreadMessages {
  messages: readonly Message[];
  /** Files that were attached since the last message of the user. The next message carries them. */
  attached?: readonly FilePart[] | undefined;
  /** The tokens of the model steps that ended in the entries; absent if there are none. Messages of the API do not say it. */
  usage?: ThreadUsage | undefined;
}

export interface ThreadUsage {
  inputTokens: number;
  outputTokens: number;
}

/** The Run that is active, else the last one. */
export interface CurrentRun {
  id: string;
  status: 'queued' | 'waiting_input' | AgentMessage['status'];
}

/** A request that no one has decided. */
export interface OpenQuestion {
  requestId: string;
  runId: string;
  toolCallId: string;
  toolName: string;
  title: string | null;
  toolInput: Record<string, unknown> | null;
}

/**
 * Folds log entries, oldest first, into messages. `previous` is the result for earlier entries, or the messages that the API
 * returned. It is not changed, and unchanged messages and parts stay the same objects. An answer follows the message that it
 * answers, even if other messages were queued before the answer began. The text of a voided step disappears.
 */
export function reduceThread(
  entries: Iterable<MessageEntry>,
  previous: ThreadMessages = { messages: [] },
): ThreadMessages {
  const fold = new Fold(previous);
  for (const entry of entries) fold.add(entry);
  return fold.result();
}

/** Returns the Run that works or waits for a person, else the next queued one, else the last one; null if there is none. */
export function currentRun(messages: readonly Message[]): CurrentRun | null {
  const answers = messages.filter(({ role }) => role === 'agent') as AgentMessage[];
  const active = answers.find(({ status }) => status === 'running');
  if (active !== undefined) {
    return { id: active.runId, status: openQuestions([active]).length > 0 ? 'waiting_input' : 'running' };
  }
  const answered = new Set(answers.map(({ runId }) => runId));
  const queued = messages.find(({ runId }) => runId !== null && !answered.has(runId));
  if (queued?.runId) return { id: queued.runId, status: 'queued' };
  const last = answers.at(-1);
  return last === undefined ? null : { id: last.runId, status: last.status };
}

/** Returns the requests that wait for a decision, oldest first. */
export function openQuestions(messages: readonly Message[]): OpenQuestion[] {
  return messages.flatMap(({ runId, parts }) =>
    parts.flatMap((part) => {
      if (part.type !== 'tool_call' || part.approval?.state !== 'pending' || runId === null) return [];
      const { toolCallId, toolName, title, toolInput, approval } = part;
      return [{ requestId: approval.requestId, runId, toolCallId, toolName, title, toolInput }];
    }),
  );
}

const NONE: readonly FilePart[] = [];
const ENDINGS: Record<string, AgentMessage['status']> = { cancelled: 'cancelled', expired: 'expired' };

class Fold {
  private messages: Message[];
  private attached: readonly FilePart[];
  private usage: ThreadUsage | undefined;
  /** Whether `messages` is a copy, and the messages and parts that are copies or new. Only these may change. */
  private isCopy = false;
  private readonly copies = new Set<object>();

  constructor(private readonly previous: ThreadMessages) {
    this.messages = previous.messages as Message[];
    this.attached = previous.attached ?? NONE;
    this.usage = previous.usage;
  }

  result(): ThreadMessages {
    const { previous, messages, attached, usage } = this;
    const isSame =
      messages === previous.messages && attached === (previous.attached ?? NONE) && usage === previous.usage;
    return isSame ? previous : { messages, attached, ...(usage && { usage }) };
  }

  add(entry: MessageEntry): void {
    const { type, runId } = entry;
    if (type === 'user.message') return this.addMessage(entry);
    if (runId === null) return type === 'session_files.updated' ? this.attach(entry) : this.discard(entry);
    if (type === 'agent.message.delta') return this.addText(runId, entry, 'text');
    if (type === 'agent.thinking.delta') return this.addText(runId, entry, 'thinking');
    this.discard(entry);
    this.close(runId);
    switch (type) {
      case 'run.started':
        this.answer(runId, entry);
        break;
      case 'tool.use.started':
      case 'tool.confirmation.required':
      case 'tool.use.completed':
        this.setCall(this.answer(runId, entry), entry);
        break;
      case 'file.changed':
      case 'session_files.updated':
        this.setFile(this.answer(runId, entry), entry);
        break;
      case 'session.status':
        if (entry.content === 'decided') this.decide(runId, entry);
        break;
      case 'usage.updated':
        this.usage = addUsage(this.usage, entry.content);
        break;
      case 'run.completed':
      case 'run.failed':
        this.end(this.answer(runId, entry), entry);
        break;
    }
  }

  private addMessage({ id, runId, occurredAt, content, fileIds = [] }: MessageEntry): void {
    const files = fileIds.map((fileId): FilePart => {
      const known = this.attached.find((file) => file.fileId === fileId);
      return known ?? { type: 'file', fileId, name: null, kind: 'attachment', action: 'attached' };
    });
    const parts: MessagePart[] = [{ type: 'text', text: content, state: 'done' }, ...files];
    this.insert(this.messages.length, { id, role: 'user', runId, createdAt: occurredAt, parts });
    this.attached = NONE;
  }

  /** Keeps a file until the next message carries it. */
  private attach(entry: MessageEntry): void {
    const others = this.attached.filter(({ fileId }) => fileId !== entry.content);
    if (entry.action === 'attached') this.attached = [...others, toFile(entry)];
    else if (others.length < this.attached.length) this.attached = others;
  }

  private addText(runId: string, entry: MessageEntry, type: TextPart['type']): void {
    const { stepId, content } = entry;
    const parts = this.answer(runId, entry).parts as MessagePart[];
    // Without the id of a step (an earlier release), an open text continues.
    const isOwn = (part: MessagePart): part is TextPart =>
      isText(part) && part.stepId === stepId && (stepId !== undefined || part.state === 'streaming');
    const at = parts.findLastIndex((part) => isOwn(part) && part.type === type);
    if (at !== -1) {
      const part = this.own(parts, at) as TextPart;
      part.text += content;
      part.state = 'streaming';
      return;
    }
    const part: TextPart = { type, text: content, state: 'streaming', ...(stepId === undefined ? {} : { stepId }) };
    this.copies.add(part);
    const text = type === 'thinking' ? parts.findLastIndex(isOwn) : -1;
    parts.splice(text === -1 ? parts.length : text, 0, part);
  }

  /** Ends the open text of a Run, because an entry that is no delta follows it. */
  private close(runId: string): void {
    this.changeParts(
      runId,
      (part) => isOpen(part),
      (part) => (part.state = 'done'),
    );
  }

  /** Removes the text of an interrupted step. Earlier releases do not name the step; then it is the step with the open text. */
  private discard({ type, runId, content, voidedStepId }: MessageEntry): void {
    if (type !== 'session.status') return;
    const isVoid =
      voidedStepId === undefined ? isOpen : (part: MessagePart) => isText(part) && part.stepId === voidedStepId;
    if (voidedStepId === undefined && content !== 'RESCHEDULING') return;
    const at = this.messages.findLastIndex(
      (message) => (voidedStepId !== undefined || message.runId === runId) && message.parts.some(isVoid),
    );
    if (at === -1) return;
    const message = this.draft(at);
    message.parts = message.parts.filter((part) => !isVoid(part));
  }

  private setCall(message: AgentMessage, entry: MessageEntry): void {
    const { toolCallId = '', toolName = '', content } = entry;
    const part = this.ownPart<ToolCallPart>(
      message,
      (each) => each.type === 'tool_call' && each.toolCallId === toolCallId,
      {
        ...{ type: 'tool_call', toolCallId, toolName, title: null, toolInput: null, state: 'running' },
        ...{ summary: null, durationMs: null, approval: null },
      },
    );
    if (entry.type === 'tool.use.completed') {
      part.state = entry.status === 'error' ? 'failed' : 'completed';
      part.summary = content;
      part.durationMs = entry.durationMs;
      return;
    }
    part.toolInput = entry.toolInput ?? part.toolInput;
    if (entry.type === 'tool.use.started') {
      // A call that starts again has no result yet.
      Object.assign(part, { title: content, state: 'running', summary: null, durationMs: null });
      return;
    }
    part.title = entry.title ?? part.title;
    part.state = 'waiting';
    part.approval = { requestId: content, state: 'pending' };
  }

  private decide(runId: string, { requestId = '', decision }: MessageEntry): void {
    const isAllowed = decision === 'allow_once';
    this.changeParts(
      runId,
      (part): part is ToolCallPart => part.type === 'tool_call' && part.approval?.requestId === requestId,
      (part) => {
        part.approval = { requestId, state: isAllowed ? 'allowed' : 'rejected' };
        if (part.state === 'waiting') part.state = isAllowed ? 'running' : 'failed';
      },
    );
  }

  /** Adds a file once, even if more happens to it in the same Run. */
  private setFile(message: AgentMessage, entry: MessageEntry): void {
    const now = toFile(entry);
    const part = this.ownPart<FilePart>(message, (each) => each.type === 'file' && each.fileId === now.fileId, now);
    part.name = now.name ?? part.name;
    part.kind = now.kind ?? part.kind;
    const isRemoved = now.action === 'deleted' || now.action === 'detached';
    if (isRemoved || part.action === null) part.action = now.action;
  }

  private end(message: AgentMessage, { type, content, error }: MessageEntry): void {
    message.status = type === 'run.completed' ? 'completed' : error ? 'failed' : (ENDINGS[content] ?? 'failed');
    const { code = null, retryable = null } = error ?? {};
    message.error = message.status === 'failed' ? { code, message: content, retryable } : null;
    this.changeParts(
      message.runId,
      (part): part is ToolCallPart =>
        part.type === 'tool_call' &&
        (part.state === 'waiting' || part.state === 'running' || part.approval?.state === 'pending'),
      (part) => {
        if (part.state === 'waiting' || part.state === 'running') part.state = 'stopped';
        if (part.approval?.state === 'pending') part.approval = { ...part.approval, state: 'withdrawn' };
      },
    );
  }

  /** Returns the answer of a Run as a copy that may be changed. If there is none, the entry begins it. */
  private answer(runId: string, { occurredAt }: MessageEntry): AgentMessage {
    const at = this.findAnswer(runId);
    if (at !== -1) return this.draft(at) as AgentMessage;
    const message: AgentMessage = {
      ...{ id: runId, role: 'agent', runId, createdAt: occurredAt },
      ...{ parts: [], status: 'running', error: null },
    };
    this.copies.add(message);
    let place = this.messages.findLastIndex((each) => each.runId === runId) + 1;
    if (place === 0) {
      // A retry answers no message. Runs take turns, so the last messages without an answer are answered later.
      place = this.messages.findLastIndex(({ role }) => role === 'agent') + 1;
    }
    this.insert(place, message);
    return message;
  }

  private findAnswer(runId: string): number {
    return this.messages.findLastIndex((message) => message.role === 'agent' && message.runId === runId);
  }

  private insert(at: number, message: Message): void {
    this.copyList().splice(at, 0, message);
  }

  private copyList(): Message[] {
    if (!this.isCopy) this.messages = [...this.messages];
    this.isCopy = true;
    return this.messages;
  }

  /** Replaces the message by a copy that may be changed, and returns the copy. */
  private draft(at: number): Message {
    const message = this.messages[at]!;
    if (this.copies.has(message)) return message;
    const copy = { ...message, parts: [...message.parts] };
    this.copies.add(copy);
    this.copyList()[at] = copy;
    return copy;
  }

  private own(parts: MessagePart[], at: number): MessagePart {
    const part = parts[at]!;
    if (this.copies.has(part)) return part;
    const copy = { ...part };
    this.copies.add(copy);
    parts[at] = copy;
    return copy;
  }

  private ownPart<Part extends MessagePart>(
    message: AgentMessage,
    isIt: (part: MessagePart) => boolean,
    otherwise: Part,
  ): Part {
    const parts = message.parts as MessagePart[];
    const at = parts.findLastIndex(isIt);
    if (at !== -1) return this.own(parts, at) as Part;
    this.copies.add(otherwise);
    parts.push(otherwise);
    return otherwise;
  }

  /** Changes the parts of an answer that fit. Copies nothing if none fits. */
  private changeParts<Part extends MessagePart>(
    runId: string,
    fits: (part: MessagePart) => part is Part,
    change: (part: Part) => void,
  ): void {
    const at = this.findAnswer(runId);
    if (at === -1 || !this.messages[at]!.parts.some(fits)) return;
    const parts = this.draft(at).parts as MessagePart[];
    for (let i = 0; i < parts.length; i++) if (fits(parts[i]!)) change(this.own(parts, i) as Part);
  }
}

function isText(part: MessagePart): part is TextPart {
  return part.type === 'text' || part.type === 'thinking';
}

function isOpen(part: MessagePart): part is TextPart {
  return isText(part) && part.state === 'streaming';
}

function toFile({ content, name, kind, action }: MessageEntry): FilePart {
  return { type: 'file', fileId: content, name: name ?? null, kind: kind ?? null, action: action ?? null };
}

/** `content`: the JSON of a `usage.updated` entry. Adds nothing if it is something else. */
function addUsage(sum: ThreadUsage | undefined, content: string): ThreadUsage | undefined {
  const { inputTokens = 0, outputTokens = 0 } = parseUsage(content);
  if (inputTokens === 0 && outputTokens === 0) return sum;
  return {
    inputTokens: (sum?.inputTokens ?? 0) + inputTokens,
    outputTokens: (sum?.outputTokens ?? 0) + outputTokens,
  };
}

function parseUsage(content: string): Partial<ThreadUsage> {
  try {
    return JSON.parse(content) as Partial<ThreadUsage>;
  } catch {
    return {};
  }
}
