import { createParser } from 'eventsource-parser';
import { eventually } from '#testing';
import { OpenApiCheck, type Json, type Method } from './openapi-check.ts';

/** The records as a client reads them (docs/spec/agent-threads-api.md#resources). */
export interface Thread {
  id: string;
  agent_id: string;
  userId: string;
  kind: string;
  source: string;
  status: string;
  title: string | null;
  last_run_id: string | null;
  created_at: string;
  updated_at: string;
}

export interface Run {
  id: string;
  status: string;
  trigger: string;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  updatedAt: string;
  error: { code: string; message: string; retryable: boolean } | null;
  finalOutput: { text: string; warnings: { code: string; count: number }[] } | null;
}

export interface Entry {
  id: string;
  type: string;
  occurredAt: string;
  runId: string | null;
  status: string;
  content: string;
  durationMs: number | null;
  tokens: number | null;
  toolCallId?: string;
  toolName?: string;
  toolInput?: Json;
  /** Of the result of a posted event. */
  requestId: string | null;
  run: Run;
}

export interface FileRecord {
  id: string;
  name: string;
  mimeType: string | null;
  size: number;
  kind?: string;
  committed?: boolean;
  createdAt: string;
}

/** All that answers hold; which answer holds what is checked against the OpenAPI document. */
export interface Body {
  thread: Thread;
  run: Run;
  links: { thread: string };
  acceptedAt: string;
  events: Entry[];
  warnings: unknown[];
  truncated: boolean;
  threads: Thread[];
  runs: Run[];
  nextCursor: string | null;
  agent: Json;
  file: FileRecord;
  files: FileRecord[];
  ok: true;
  error: { code: string; message: string };
}

export interface Reply {
  status: number;
  headers: Headers;
  bytes: Buffer;
  text: string;
  /** Parsed; empty where the answer is not JSON. */
  json: Body;
  /** Of an error: what most tests compare. */
  code: string | undefined;
}

export interface Call {
  /** Null: no header. Default: the client's. */
  token?: string | null;
  json?: unknown;
  /** As it stands, without a content type of ours. */
  body?: string | Buffer | FormData;
  headers?: Record<string, string>;
}

/** A client of the contract. Whatever it is answered, it holds against the OpenAPI document. */
export class Client {
  private readonly streams = new Set<EventStream>();

  constructor(
    readonly baseUrl: string,
    readonly token: string,
    private readonly check: OpenApiCheck,
  ) {}

  /** The document is read from the system itself. */
  static async connect(baseUrl: string, token: string): Promise<Client> {
    const response = await fetch(`${baseUrl}/openapi.json`);
    return new Client(baseUrl, token, new OpenApiCheck((await response.json()) as OpenApiCheck['document']));
  }

  get document(): OpenApiCheck['document'] {
    return this.check.document;
  }

  as(token: string): Client {
    return new Client(this.baseUrl, token, this.check);
  }

  /** The same caller at another process. */
  at(baseUrl: string): Client {
    return new Client(baseUrl, this.token, this.check);
  }

  get(path: string, call?: Call): Promise<Reply> {
    return this.call('GET', path, call);
  }

  post(path: string, json?: unknown, call: Call = {}): Promise<Reply> {
    return this.call('POST', path, json === undefined ? call : { ...call, json });
  }

  delete(path: string, call?: Call): Promise<Reply> {
    return this.call('DELETE', path, call);
  }

  async call(
    method: Method,
    path: string,
    { token = this.token, json, body, headers = {} }: Call = {},
  ): Promise<Reply> {
    const response = await fetch(`${this.baseUrl}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(body === undefined ? {} : { body }),
    });
    return this.take(method, path, response);
  }

  async take(method: Method, path: string, response: Response): Promise<Reply> {
    const { status, headers } = response;
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = headers.get('content-type')?.startsWith('application/json') === true;
    const text = bytes.toString();
    const json = isJson && bytes.length > 0 ? (JSON.parse(text) as Body) : undefined;
    this.check.check({ method, path, status, headers }, json ?? (bytes.length > 0 ? text : undefined));
    return { status, headers, bytes, text, json: json ?? ({} as Body), code: json?.error?.code };
  }

  /** Opens a stream; one that is refused is a reply. */
  async openStream(path: string, { headers = {}, token = this.token }: Call = {}): Promise<EventStream> {
    const abort = new AbortController();
    const response = await fetch(`${this.baseUrl}${path}`, {
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
      signal: abort.signal,
    });
    if (response.status !== 200 && response.status !== 204) {
      const { status, text } = await this.take('GET', path, response);
      throw new Error(`the stream was refused: ${status} ${text}`);
    }
    const { status, headers: answered } = response;
    this.check.check({ method: 'GET', path, status, headers: answered }, response.body === null ? undefined : '');
    const stream = new EventStream(response, abort, this.check);
    this.streams.add(stream);
    return stream;
  }

  /** A stream read to its end. */
  async readStream(path: string, call?: Call): Promise<EventStream> {
    const stream = await this.openStream(path, call);
    await stream.untilEnded();
    return stream;
  }

  close(): void {
    for (const stream of this.streams) stream.close();
  }
}

export interface Frame {
  event: string | undefined;
  id: string | undefined;
  data: string;
}

/** What a client sees of a stream; the data of each frame is held against the document. */
export class EventStream {
  readonly frames: Frame[] = [];
  readonly comments: string[] = [];
  text = '';
  retryMs: number | undefined;
  /** Null while it is open; `cut` where it did not end by itself. */
  end: 'ended' | 'cut' | null = null;
  private problem: Error | undefined;

  constructor(
    readonly response: Response,
    private readonly abort: AbortController,
    private readonly check: OpenApiCheck,
  ) {
    void this.read();
  }

  get entries(): Entry[] {
    return this.frames.filter(({ event }) => event === 'thread.event').map(({ data }) => JSON.parse(data) as Entry);
  }

  get error(): Body['error'] | undefined {
    const frame = this.frames.find(({ event }) => event === 'thread.error');
    return frame && (JSON.parse(frame.data) as Body).error;
  }

  /** Waits for a frame; throws where one was not as documented. */
  until(what: string, seen: (stream: this) => boolean, timeoutMs = 15_000): Promise<unknown> {
    return eventually(
      () => {
        if (this.problem !== undefined) return { problem: this.problem };
        if (seen(this)) return true;
        throw new Error(`seen so far: ${JSON.stringify(this.frames.slice(-5))}, ${this.end ?? 'open'}`);
      },
      { what: `the stream shows ${what}`, timeoutMs },
    ).then(() => {
      if (this.problem !== undefined) throw this.problem;
    });
  }

  untilType(type: string): Promise<unknown> {
    return this.until(type, ({ entries }) => entries.some((entry) => entry.type === type));
  }

  untilEnded(timeoutMs?: number): Promise<unknown> {
    return this.until('its end', ({ end }) => end !== null, timeoutMs);
  }

  close(): void {
    this.abort.abort();
  }

  private async read(): Promise<void> {
    const parser = createParser({
      onEvent: ({ event, id, data }) => this.take({ event, id, data }),
      onComment: (comment) => this.comments.push(comment),
      onRetry: (retryMs) => (this.retryMs = retryMs),
    });
    const decoder = new TextDecoder();
    try {
      // A 204 has no body.
      for await (const chunk of this.response.body ?? []) {
        const text = decoder.decode(chunk as Uint8Array, { stream: true });
        this.text += text;
        parser.feed(text);
      }
      this.end = 'ended';
    } catch {
      this.end = 'cut';
    }
  }

  private take(frame: Frame): void {
    try {
      const data: unknown = JSON.parse(frame.data);
      if (frame.event === 'thread.event') {
        this.check.checkSchema('ThreadEventLogEntry', data);
        if (frame.id !== (data as Entry).id) throw new Error(`the frame ${frame.id} has another entry in it`);
      } else if (frame.event === 'thread.error') this.check.checkSchema('ErrorEnvelope', data);
      else if (frame.event !== 'thread.idle') throw new Error(`an unknown frame: ${frame.event}`);
    } catch (error) {
      this.problem ??= error as Error;
    }
    this.frames.push(frame);
  }
}
