import type { ThreadEventLogEntry as Entry } from '#contract';

/**
 * `open`: more may come. `whole`: the Agent has said it. `void`: its worker was lost, and the step runs again from its
 * start. `cut`: the Run ended before it was whole.
 */
export type TextState = 'open' | 'whole' | 'void' | 'cut';

/** `asked`: a person has to allow it. `cut`: the Run ended before it answered, or before anybody decided. */
export type ToolState = 'asked' | 'running' | 'done' | 'failed' | 'cut';

interface Shown {
  /** Of its first entry. */
  id: string;
  at: string;
  runId: string | null;
}

export interface TextItem extends Shown {
  kind: 'message' | 'thinking';
  text: string;
  state: TextState;
}

export interface ToolItem extends Shown {
  kind: 'tool';
  toolCallId: string;
  toolName: string;
  /** Null before it has started. */
  title: string | null;
  input: Record<string, unknown> | null;
  state: ToolState;
  /** What a person was asked under, if one was. */
  requestId: string | null;
  summary: string | null;
  durationMs: number | null;
}

/** What the log shows for one or several of its entries. */
export type LogItem =
  | TextItem
  | ToolItem
  | (Shown & { kind: 'user'; text: string })
  | (Shown & { kind: 'status'; status: string })
  | (Shown & { kind: 'started' })
  | (Shown & { kind: 'completed'; durationMs: number | null })
  | (Shown & { kind: 'ended'; message: string; durationMs: number | null })
  | (Shown & { kind: 'usage'; tokens: number; inputTokens: number | null; outputTokens: number | null })
  | (Shown & { kind: 'file'; fileId: string; isAttachment: boolean })
  | (Shown & { kind: 'unsupported' });

/** What is not finished while the entries are read. */
interface Open {
  message: TextItem | undefined;
  thinking: TextItem | undefined;
  tools: Map<string, ToolItem>;
}

/**
 * The conversation that entries of the public log say, in their order. A message is the pieces between two marks
 * `RESCHEDULING` or entries of tools; pieces before such a mark, of a step that was not finished, are void.
 */
export function toLogItems(entries: readonly Entry[]): LogItem[] {
  const items: LogItem[] = [];
  const open: Open = { message: undefined, thinking: undefined, tools: new Map() };
  for (const entry of entries) {
    const item =
      entry.status === 'unsupported' ? { kind: 'unsupported' as const, ...placeOf(entry) } : read(entry, open);
    if (item !== null) items.push(item);
  }
  return items;
}

const placeOf = ({ id, occurredAt, runId }: Entry): Shown => ({ id, at: occurredAt, runId });

/** The item that begins with this entry; null where the entry adds to an earlier one. */
function read(entry: Entry, open: Open): LogItem | null {
  const { content, durationMs } = entry;
  const place = placeOf(entry);
  switch (entry.type) {
    case 'user.message':
      return { kind: 'user', ...place, text: content };
    case 'agent.message.delta':
      return addText(entry, open, 'message');
    case 'agent.thinking.delta':
      return addText(entry, open, 'thinking');
    case 'tool.use.started':
    case 'tool.confirmation.required':
    case 'tool.use.completed':
      endTexts(open, 'whole');
      return addTool(entry, open);
    case 'file.changed':
    case 'session_files.updated':
      return { kind: 'file', ...place, fileId: content, isAttachment: entry.type === 'session_files.updated' };
    case 'session.status':
      if (content === 'RESCHEDULING') endTexts(open, 'void');
      return { kind: 'status', ...place, status: content };
    case 'usage.updated':
      // A step's usage is stored with its message: whatever comes after, the message holds.
      endTexts(open, 'whole');
      return { kind: 'usage', ...place, tokens: entry.tokens ?? 0, ...readUsage(content) };
    case 'run.started':
      return { kind: 'started', ...place };
    case 'run.completed':
      endTexts(open, 'whole');
      return { kind: 'completed', ...place, durationMs };
    case 'run.failed':
      endTexts(open, 'cut');
      endTools(open, entry.runId);
      return { kind: 'ended', ...place, message: content, durationMs };
  }
}

function addText(entry: Entry, open: Open, kind: TextItem['kind']): TextItem | null {
  const held = open[kind];
  if (held !== undefined && held.runId === entry.runId) {
    held.text += entry.content;
    return null;
  }
  const item: TextItem = { kind, ...placeOf(entry), text: entry.content, state: 'open' };
  open[kind] = item;
  return item;
}

function endTexts(open: Open, state: TextState): void {
  for (const kind of ['message', 'thinking'] as const) {
    if (open[kind] !== undefined) open[kind].state = state;
    open[kind] = undefined;
  }
}

/** All entries of one call are one item; what began before the first entry that is held lacks its input. */
function addTool(entry: Entry, { tools }: Open): ToolItem | null {
  const { type, content, durationMs, status, toolCallId = entry.id, toolName = '', toolInput } = entry;
  const held = tools.get(toolCallId);
  const item: ToolItem = held ?? {
    ...{ kind: 'tool', ...placeOf(entry), toolCallId, toolName, title: null, input: null, state: 'running' },
    ...{ requestId: null, summary: null, durationMs: null },
  };
  item.input = toolInput ?? item.input;
  if (type === 'tool.use.started') Object.assign(item, { title: content, state: 'running' });
  if (type === 'tool.confirmation.required') Object.assign(item, { requestId: content, state: 'asked' });
  if (type === 'tool.use.completed')
    Object.assign(item, { summary: content, durationMs, state: status === 'error' ? 'failed' : 'done' });
  tools.set(toolCallId, item);
  return held === undefined ? item : null;
}

function endTools({ tools }: Open, runId: string | null): void {
  for (const tool of tools.values()) {
    if (tool.runId === runId && (tool.state === 'asked' || tool.state === 'running')) tool.state = 'cut';
  }
}

function readUsage(content: string): { inputTokens: number | null; outputTokens: number | null } {
  const { inputTokens = null, outputTokens = null } = parsed(content);
  return { inputTokens, outputTokens };
}

function parsed(content: string): { inputTokens?: number; outputTokens?: number } {
  try {
    return JSON.parse(content) as { inputTokens?: number; outputTokens?: number };
  } catch {
    return {};
  }
}
