import { isFields, type EventsOfProtocol, type Fields, type Reader } from './json-fields.ts';

/** The block types that are read, with the field of their content. Other blocks are left out with their deltas. */
const BLOCKS = { text: 'text', thinking: 'thinking', redacted_thinking: 'data', tool_use: 'input' } as const;
/** The delta types that are read, with the field of their content. */
const DELTAS = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
} as const;

type EventType =
  | `message${'' | '_start' | '_delta' | '_stop'}`
  | `content_block_${'start' | 'delta' | 'stop'}`
  | 'ping';

/** A block that has started and not stopped. */
interface OpenBlock {
  type: keyof typeof BLOCKS | null;
  /** The input that came with the start of a call. It is used if no delta has input. */
  input: string;
}

/** Reduces events of Anthropic's Messages API to the fields that are used. Reports and leaves out what it cannot read. */
export class AnthropicEvents implements EventsOfProtocol {
  isEnding = false;
  isOver = false;
  isReadable = false;
  private readonly events: Record<EventType, (value: Fields) => Fields[]> = {
    ping: () => [],
    message_start: (value) => this.start(value),
    content_block_start: (value) => this.startBlock(value),
    content_block_delta: (value) => this.delta(value),
    content_block_stop: (value) => this.stopBlock(this.read.index(value.index, 'index') ?? this.last),
    message_delta: (value) => this.messageDelta(value),
    message_stop: () => this.stop(),
    message: (value) => this.whole(value),
  };
  private hasStarted = false;
  private readonly open = new Map<number, OpenBlock>();
  private last = -1;
  private stopReason: string | undefined;
  private outputTokens = 0;

  constructor(private readonly read: Reader) {}

  take(value: Fields, name: string | undefined): Fields[] {
    const { read } = this;
    if (value.type === undefined || value.type === null) read.odd('field', 'type');
    const type = value.type ?? name ?? ('content' in value ? 'message' : '');
    if (typeof type !== 'string' || !Object.hasOwn(this.events, type)) return read.odd('part', 'type') ?? [];
    this.isReadable = true;
    return this.events[type as EventType](value);
  }

  end(): Fields[] {
    this.isOver = true;
    if (!this.isEnding) return [];
    this.read.odd('end', 'message_stop');
    return this.stop();
  }

  /** Reads a whole message. Some servers send one although a stream was requested. */
  private whole(message: Fields): Fields[] {
    const { read } = this;
    read.odd('part', 'message');
    const { content } = message;
    const list = typeof content === 'string' ? [{ text: content }] : read.list(content, 'content');
    const blocks = list.flatMap((block, index) => [
      { type: 'content_block_start' as const, index, content_block: block },
      { type: 'content_block_stop' as const, index },
    ]);
    const end = { type: 'message_delta', delta: message, usage: message.usage } as const;
    const events = [{ type: 'message_start', message } as const, ...blocks, end, { type: 'message_stop' } as const];
    return events.flatMap((event) => this.events[event.type](event));
  }

  private start({ message }: Fields): Fields[] {
    const { read } = this;
    if (this.hasStarted) return read.odd('part', 'message_start') ?? [];
    this.hasStarted = true;
    const { usage } = read.fields(message, 'message');
    if (!isFields(usage)) read.odd('field', 'message.usage');
    const told = this.usage(isFields(usage) ? usage : {}, 'message.usage');
    return [{ type: 'message_start', message: { usage: { input_tokens: 0, ...told } } }];
  }

  private startBlock(value: Fields): Fields[] {
    const { read } = this;
    const index = read.index(value.index, 'index') ?? this.last + 1;
    const block = read.fields(value.content_block, 'content_block');
    const type = typeOf(block, BLOCKS);
    const before = this.open.has(index) ? this.stopBlock(index) : [];
    this.last = index;
    if (type === null) read.odd('part', 'content_block.type');
    // Its deltas tell a type that is not named.
    if (type !== null || typeof block.type === 'string') this.open.set(index, { type, input: '' });
    if (type === null) return before;
    return [...before, ...this.begun(type, block, index)];
  }

  private begun(type: keyof typeof BLOCKS, block: Fields, index: number): Fields[] {
    const { read } = this;
    const content = block[BLOCKS[type]];
    const begins = (more: Fields): Fields => ({ type: 'content_block_start', index, content_block: { type, ...more } });
    if (type === 'tool_use') {
      const hasInput = isFields(content) ? Object.keys(content).length > 0 : typeof content === 'string';
      if (hasInput) this.open.get(index)!.input = read.json(content, 'content_block.input') ?? '';
      const id = read.word(block.id, 'content_block.id') ?? `call_${index}`;
      return [begins({ id, name: read.text(block.name, 'content_block.name') ?? '', input: {} })];
    }
    const text = read.text(content, `content_block.${BLOCKS[type]}`) ?? '';
    if (type === 'redacted_thinking') return [begins({ data: text })];
    const signature = type === 'thinking' ? (read.text(block.signature, 'content_block.signature') ?? '') : '';
    return [
      begins({ [type]: '' }),
      ...(text === '' ? [] : [deltaOf(index, { type: `${type}_delta`, [type]: text })]),
      ...(signature === '' ? [] : [deltaOf(index, { type: 'signature_delta', signature })]),
    ];
  }

  private delta(value: Fields): Fields[] {
    const { read } = this;
    const index = read.index(value.index, 'index') ?? this.last;
    const block = this.open.get(index);
    if (block?.type === null) return [];
    const delta = read.fields(value.delta, 'delta');
    const type = typeOf(delta, DELTAS);
    // The sources of a text are ignored, because Spool does not show them.
    if (type === null) return delta.type === 'citations_delta' ? [] : (read.odd('part', 'delta.type') ?? []);
    const field = DELTAS[type];
    const text = read.json(delta[field], `delta.${field}`) ?? '';
    if (block !== undefined && field === 'partial_json' && text !== '') block.input = '';
    // Some servers send no start of a text block.
    const isUnnamed = block === undefined && (field === 'text' || field === 'thinking');
    const start = isUnnamed ? this.startBlock({ index, content_block: { type: field } }) : [];
    return [...start, deltaOf(index, { type, [field]: text })];
  }

  private stopBlock(index: number): Fields[] {
    const block = this.open.get(index);
    this.open.delete(index);
    if (block === undefined || block.type === null) return [];
    const input = block.input === '' ? [] : [deltaOf(index, { type: 'input_json_delta', partial_json: block.input })];
    return [...input, { type: 'content_block_stop', index }];
  }

  private messageDelta(value: Fields): Fields[] {
    const { read } = this;
    const { stop_reason: reason } = read.fields(value.delta, 'delta');
    this.stopReason = read.text(reason, 'delta.stop_reason') ?? this.stopReason;
    if (this.stopReason !== undefined) this.isEnding = true;
    const usage = isFields(value.usage) ? value.usage : {};
    const told = this.usage(usage, 'usage');
    this.outputTokens = read.tokens(usage.output_tokens, 'usage.output_tokens') ?? this.outputTokens;
    const ended = { type: 'message_delta', delta: { stop_reason: this.stopReason } };
    return [{ ...ended, usage: { ...told, output_tokens: this.outputTokens } }];
  }

  /** Stops open blocks first, because a call counts only once its block has stopped. */
  private stop(): Fields[] {
    this.isOver = true;
    const blocks = [...this.open.keys()].flatMap((index) => {
      this.read.odd('end', 'content_block_stop');
      return this.stopBlock(index);
    });
    return [...blocks, { type: 'message_stop' }];
  }

  /** Returns only counts above zero. A zero would replace an earlier count, and missing counts are estimated. */
  private usage(usage: Fields, at: string): Fields {
    const names = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'];
    const told = names.map((name) => [name, this.read.tokens(usage[name], `${at}.${name}`)] as const);
    return Object.fromEntries(told.filter(([, tokens = 0]) => tokens > 0));
  }
}

function deltaOf(index: number, delta: Fields): Fields {
  return { type: 'content_block_delta', index, delta };
}

/** Returns its type if the table has it. One without a type is told by its field. */
function typeOf<Table extends Record<string, string>>({ type, ...fields }: Fields, table: Table): keyof Table | null {
  const isType = (name: string) => (typeof type === 'string' ? name === type : Boolean(fields[table[name]!]));
  return Object.keys(table).find(isType) ?? null;
}
