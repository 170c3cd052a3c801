import type { Message, MessagePart } from '#client';
import { showControls, showInLine } from '../text.ts';

type ToolCall = Extract<MessagePart, { type: 'tool_call' }>;
type AgentMessage = Extract<Message, { role: 'agent' }>;

/** How many characters of arguments and results a line shows. An approval shows all arguments, so that nothing is approved unseen. */
const SHOWN = 200;

/** Renders the messages of a Thread as text that a terminal appends. Text on the screen cannot be changed later. */
export class Renderer {
  /** The characters or the state that have been shown, by the key of a part or the id of a message. */
  private shown = new Map<string, number | string>();
  /** Messages that were typed on this terminal, so they are already on the screen. */
  private readonly typed: string[] = [];
  private isLineStart = true;

  constructor(private readonly coloured: boolean) {}

  /** Does not show the next message with this text, because it was typed on this terminal. */
  expectTyped(text: string): void {
    this.typed.push(text);
  }

  /** Undoes `expectTyped` for a message that was not sent. */
  forgetTyped(text: string): void {
    const at = this.typed.lastIndexOf(text);
    if (at !== -1) this.typed.splice(at, 1);
  }

  /** Returns the text that these messages add, with control characters escaped. */
  render(messages: readonly Message[]): string {
    const before = this.shown;
    this.shown = new Map();
    const keys = new Set(messages.flatMap(({ id, parts }) => parts.map((part, i) => keyOf(id, part, i))));
    const isVoid = [...before].some(([key, value]) => typeof value === 'number' && !keys.has(key));
    const note = isVoid ? this.line(this.dim('(The step was interrupted and runs again. Ignore its text above.)')) : '';
    const texts = messages.map((message) =>
      message.role === 'user' ? this.renderQuestion(message, before) : this.renderAnswer(message, before),
    );
    return note + texts.join('');
  }

  /** Returns the text as a separate line. */
  line(text: string): string {
    return `${this.startLine()}${text}\n`;
  }

  /** Returns a line end if the current line has text. */
  startLine(): string {
    const start = this.isLineStart ? '' : '\n';
    this.isLineStart = true;
    return start;
  }

  private renderQuestion({ id, parts }: Message, before: Shown): string {
    this.shown.set(id, 'shown');
    if (before.has(id)) return '';
    const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const at = this.typed.indexOf(text);
    if (at !== -1) this.typed.splice(at, 1);
    const files = parts.flatMap((part) => (part.type === 'file' && part.name !== null ? [part.name] : []));
    const attached = files.length > 0 ? this.line(`[attached] ${showInLine(files.join(', '))}`) : '';
    return (at === -1 ? this.line(`> ${showControls(text)}`) : '') + attached;
  }

  private renderAnswer(message: AgentMessage, before: Shown): string {
    const { id, parts, status, error } = message;
    const texts = parts.map((part, i) => this.renderPart(part, keyOf(id, part, i), before));
    this.shown.set(id, status);
    if (before.get(id) === status || status === 'running') return texts.join('');
    const ending = {
      completed: '',
      failed: this.red(`Error: ${showInLine(error?.message ?? 'The Run failed.')} (/retry tries again)`),
      cancelled: 'Stopped.',
      expired: 'The Run has expired.',
    }[status];
    return texts.join('') + (ending === '' ? this.startLine() : this.line(ending));
  }

  private renderPart(part: MessagePart, key: string, before: Shown): string {
    if (part.type === 'tool_call') return this.renderCall(part, key, before);
    if (part.type === 'file') return this.renderFile(part, key, before);
    const from = Number(before.get(key) ?? 0);
    const added = showControls(part.text.slice(from).replaceAll('\r\n', '\n'));
    this.shown.set(key, part.text.length);
    if (added === '') return '';
    const start = from === 0 ? this.startLine() : '';
    this.isLineStart = added.endsWith('\n');
    return start + (part.type === 'thinking' ? this.dim(added) : added);
  }

  private renderCall(part: ToolCall, key: string, before: Shown): string {
    const { toolName, toolInput, state, approval } = part;
    const value = `${state} ${approval?.state ?? ''}`;
    this.shown.set(key, value);
    if (before.get(key) === value) return '';
    const isAsked = approval?.state === 'pending';
    const input = toolInput === null ? '(arguments unknown)' : JSON.stringify(toolInput);
    const args = isAsked ? input : before.has(key) ? '' : cut(input);
    const name = `${toolName}${part.title !== null && part.title !== toolName ? `, ${part.title}` : ''}`;
    const line = showInLine(`[${name}] ${stateOf(part)} ${args}`.trimEnd());
    return this.line(isAsked ? line : this.dim(line));
  }

  private renderFile({ fileId, name, action }: FilePart, key: string, before: Shown): string {
    this.shown.set(key, action ?? '');
    if (before.get(key) === action) return '';
    const shownName = showInLine(name ?? fileId);
    const isThere = action === 'created' || action === 'changed';
    return this.line(
      // A name with control characters cannot be typed.
      isThere
        ? `[file] ${shownName} (/save ${shownName === name ? name : showInLine(fileId)})`
        : `[file] ${shownName}: ${action ?? 'added'}`,
    );
  }

  private dim = (text: string): string => (this.coloured ? `\u001b[2m${text}\u001b[22m` : text);
  private red = (text: string): string => (this.coloured ? `\u001b[31m${text}\u001b[39m` : text);
}

type FilePart = Extract<MessagePart, { type: 'file' }>;
type Shown = ReadonlyMap<string, number | string>;

function keyOf(messageId: string, part: MessagePart, i: number): string {
  if (part.type === 'tool_call') return `${messageId} ${part.toolCallId}`;
  return `${messageId} ${part.type === 'file' ? part.fileId : `${part.stepId ?? i} ${part.type}`}`;
}

function stateOf({ state, approval, summary }: ToolCall): string {
  if (approval?.state === 'rejected') return 'rejected';
  switch (state) {
    case 'waiting':
      return 'needs your approval:';
    case 'running':
      return approval?.state === 'allowed' ? 'allowed' : 'running';
    case 'completed':
    case 'failed':
      return `${state}${summary ? `: ${cut(summary)}` : ''}`;
    case 'stopped':
      return 'stopped; it may have taken effect';
  }
}

const cut = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
