import { isMap, type JsonMap } from './message.ts';

export const FRAMINGS = ['lines', 'events', 'body'] as const;
export type Framing = (typeof FRAMINGS)[number];

const JUNK: unknown[] = [null, 5, 'text', [], {}, true];
const UNKNOWN_BLOCKS = [{ type: 'video', data: 'AAAA' }, { type: 'toString' }, {}, 5, { type: 'image' }];
/** Beside a result. */
const NO_ERRORS = [null, {}, [], '', { code: 0, message: '' }];
const BAD_TOOLS = [
  { name: 'bad', inputSchema: { anyOf: [{ type: 'object' }] } },
  { name: 'worse', inputSchema: { type: 'object', required: [5] } },
  { name: null },
  null,
];
/** Fields that Spool does not need. Removing them, or setting them to null or a wrong type, changes nothing. */
const UNUSED = ['_meta', 'icons', 'outputSchema', 'execution', 'openWorldHint', 'size', 'lastModified'];
const KEYWORDS = ['required', 'properties', 'items', 'format', '$ref', 'anyOf', 'additionalProperties'];

/** Changes messages and bytes as sloppy servers do, without changing their meaning. Takes random numbers below 1. */
export class Sloppiness {
  constructor(private readonly random: () => number) {}

  message(message: JsonMap): JsonMap {
    const { result } = message;
    return {
      ...message,
      ...(isMap(result) && { result: this.result(result) }),
      ...(isMap(result) && this.chance(0.3) && { error: this.pick(NO_ERRORS) }),
      ...(this.chance(0.3) && { unknown: this.pick(JUNK) }),
    };
  }

  /** Returns the messages as bytes, in chunks of random sizes. */
  bytes(messages: readonly JsonMap[], framing: Framing): Uint8Array[] {
    const end = this.pick(['\n', '\r\n']);
    const framed = messages.map((message) => this.frame(message, framing).replaceAll('\n', end));
    const mark = framing === 'events' ? this.pick(['', '\uFEFF']) : '';
    const bytes = Buffer.from(`${mark}${framed.join('')}`);
    const most = this.pick([200, 2_000, 20_000]);
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      const size = 1 + Math.floor(this.random() * most);
      pieces.push(bytes.subarray(at, at + size));
      at += size;
    }
    return pieces;
  }

  private frame(message: JsonMap, framing: Framing): string {
    const mark = this.pick(['', '\uFEFF']);
    const spaced = JSON.stringify(message, null, this.pick([0, 1]));
    if (framing === 'body') return `${mark}${spaced}${this.pick(['', '\n'])}`;
    if (framing === 'lines')
      return `${this.pick(['', '\n', ' \n', 'a log\n', '{"id":1}\n'])}${mark}${JSON.stringify(message)}\n`;
    const noise = this.pick([
      '',
      ': hi\n',
      ': hi\n\n',
      'event: other\ndata: {}\n\n',
      'data: null\n\n',
      'data:\n\n',
      'id: 5\n',
    ]);
    const data = spaced.split('\n').map((line, i) => `data:${this.pick(['', ' '])}${i === 0 ? mark : ''}${line}\n`);
    return `${noise}${data.join('')}\n`;
  }

  private result(result: JsonMap): JsonMap {
    const { tools, content, isError = this.pick([null, undefined, false]) } = result;
    const fields = this.fields(result);
    if (Array.isArray(tools))
      return { ...fields, tools: this.tools(tools), nextCursor: this.pick([null, undefined, '']) };
    if (Array.isArray(content)) return { ...fields, content: this.content(content), isError };
    const { capabilities, serverInfo } = result;
    const others = this.pick([{}, { prompts: null, resources: 5, logging: null, tasks: undefined }]);
    return {
      ...fields,
      instructions: this.pick([null, undefined, 'text']),
      capabilities: { ...(capabilities as JsonMap), ...others },
      serverInfo: this.pick([serverInfo, null, undefined, { name: 'a', version: null }]),
    };
  }

  private tools(all: readonly unknown[]): unknown[] {
    return all.flatMap((given) => {
      const tool = given as JsonMap;
      const { annotations = this.pick([null, undefined]), title = this.pick([null, undefined]), inputSchema } = tool;
      const sloppy = {
        ...this.fields(tool),
        title,
        annotations: isMap(annotations) ? this.fields(annotations) : annotations,
        inputSchema: {
          ...this.schema(inputSchema as JsonMap),
          type: this.pick(['object', undefined, ['object', 'null']]),
        },
      };
      const second = { ...tool, description: 'The second of this name.' };
      return [...this.some(this.pick(BAD_TOOLS)), sloppy, ...this.some(second)];
    });
  }

  private schema(schema: JsonMap): JsonMap {
    const nulls = KEYWORDS.filter((name) => !(name in schema) && this.chance(0.15)).map((name) => [name, null]);
    const { properties, required } = schema;
    const named = Object.entries(isMap(properties) ? properties : {});
    const parts = named.map(([name, part]) => [name, isMap(part) ? this.schema(part) : part]);
    return {
      ...schema,
      ...(Object.fromEntries(nulls) as JsonMap),
      ...(isMap(properties) && { properties: Object.fromEntries([...parts, ...this.some(['none', null])]) as JsonMap }),
      ...(required === undefined && this.chance(0.15) && { required: true }),
      ...(Array.isArray(required) && { required: [...(required as unknown[]), ...this.some(null)] }),
    };
  }

  private content(all: readonly unknown[]): unknown[] {
    return all.flatMap((given) => {
      const block = given as JsonMap;
      const { type, text, data, mimeType, resource } = block;
      const sloppy = {
        ...this.fields(block),
        annotations: this.pick(JUNK),
        ...(typeof data === 'string' && { data: this.data(data, mimeType) }),
        ...(isMap(resource) && { resource: this.resource(resource) }),
      };
      const meant = type === 'text' ? this.pick([sloppy, sloppy, { text }, text]) : sloppy;
      return [...this.some(null), ...this.some(this.pick(UNKNOWN_BLOCKS)), meant];
    });
  }

  private resource(resource: JsonMap): JsonMap {
    const { blob, mimeType } = resource;
    if (typeof blob !== 'string') return { ...this.fields(resource), blob: null };
    return { ...this.fields(resource), text: null, blob: this.data(blob, mimeType) };
  }

  private data(base64: string, mimeType: unknown): string {
    const url = base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    return this.pick([base64, url, `data:${String(mimeType)};base64,${base64}`, base64.replaceAll(/.{76}/g, '$&\r\n')]);
  }

  private fields(map: JsonMap): JsonMap {
    const kept = Object.entries(map).filter(([name]) => !UNUSED.includes(name) || this.chance(0.5));
    const added = [...UNUSED, 'unknown'].filter(() => this.chance(0.15)).map((name) => [name, this.pick(JUNK)]);
    return Object.fromEntries([...kept, ...added]) as JsonMap;
  }

  /** Returns the value rarely, and mostly nothing. */
  private some<Value>(value: Value): Value[] {
    return this.chance(0.1) ? [value] : [];
  }

  private chance(share: number): boolean {
    return this.random() < share;
  }

  private pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.random() * values.length)]!;
  }
}
