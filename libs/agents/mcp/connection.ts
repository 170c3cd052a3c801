import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  ListToolsResultSchema,
  ToolListChangedNotificationSchema,
  type CallToolResult,
  type Tool as ListedTool,
} from '@modelcontextprotocol/sdk/types.js';
import { BodyTooLarge, readVersion, type Fetch, type Logger } from '#platform';
import { CallFailed, failureOf } from './call-failed.ts';
import { hideInError, hideSecrets } from './hide-secrets.ts';
import { httpTransport, TOOL_CALL_ID } from './http-transport.ts';
import { MessageTooLarge } from './message-lines.ts';
import { StdioTransport } from './stdio-transport.ts';
import type { ReadyServer } from './tool-server.ts';

/** Largest message of a server; more is never kept. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_TOOLS = 1_000;
const MAX_PAGES = 100;
/** `tools/list_changed` can get lost with the stream that carries it, which HTTP servers need not even have. */
const LIST_AGE_MS = 60_000;
/** An answer's end is noticed before its last message has been read. */
const LAST_MESSAGE_MS = 1_000;
const FAREWELL_MS = 2_000;
/** Of a server's standard error, a connection. */
const MAX_LOG_LINES = 1_000;

export interface ConnectionParts {
  fetch: Fetch;
  logger: Logger;
  /** Of `McpServersOptions`, like the next. */
  pingMs: number;
  endMs: number;
}

export interface ToolRequest {
  /** As the server calls it. */
  name: string;
  input: Record<string, unknown>;
  toolCallId: string;
  /** What else the server is told of the call, in `_meta`. */
  meta: Record<string, string>;
  timeoutMs: number;
  signal: AbortSignal;
}

interface OpenCall {
  fail: (failure: CallFailed) => void;
  /** The server has given its answer ids: the SDK asks for the rest if it breaks off. */
  resumable: boolean;
}

type Listed = { tools: Promise<readonly ListedTool[]>; at: number };

/** A connection to one tool server, from `open` to its end; it is never opened again. */
export class McpConnection {
  /** Whether new calls may use it. */
  isUsable = true;
  /** Called once, when it may not be used any more. */
  onUnusable: () => void = () => undefined;

  private readonly client = new Client({ name: 'spool', version: readVersion() });
  private readonly calls = new Map<string, OpenCall>();
  private readonly logger: Logger;
  private listed: Listed | null = null;
  private closed: 'lost' | 'too_large' | null = null;
  /** One of the two, once it is opened. */
  private http: StreamableHTTPClientTransport | null = null;
  private stdio: StdioTransport | null = null;
  private sends = new Set<Promise<void>>();
  private logLines = 0;

  constructor(
    private readonly target: ReadyServer,
    private readonly parts: ConnectionParts,
  ) {
    this.logger = parts.logger.child({ toolServer: target.server.name });
    this.client.onclose = () => this.markClosed('lost');
    this.client.onerror = (error) => this.noteError(error);
    this.client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      this.listed = null;
    });
  }

  /** Connects and initialises. Rejects with whatever went wrong, which may hold secrets. */
  async open(timeoutMs: number): Promise<void> {
    const transport = this.transport();
    await this.client.connect(transport, { timeout: timeoutMs });
  }

  /** All tools that the server has, or the first 1,000. */
  tools(): Promise<readonly ListedTool[]> {
    if (this.listed !== null && performance.now() - this.listed.at < LIST_AGE_MS) return this.listed.tools;
    const listed: Listed = { tools: this.listTools(), at: performance.now() };
    this.listed = listed;
    // Asking is cheap on a new connection, and this one may have lost its session.
    listed.tools.catch(() => this.markUnusable());
    return listed.tools;
  }

  /** Calls a tool once. Rejects with CallFailed, and with the signal's reason at its abort. */
  async call({ name, input, toolCallId, meta, timeoutMs, signal }: ToolRequest): Promise<CallToolResult> {
    signal.throwIfAborted();
    if (this.closed !== null) throw new CallFailed('not_sent');
    // One for this call alone: the SDK listens to it for ever.
    const stop = new AbortController();
    const giveUp = (): void => stop.abort('The call was given up.');
    const timer = setTimeout(() => fail(new CallFailed('timeout')), timeoutMs);
    signal.addEventListener('abort', giveUp);
    let fail: OpenCall['fail'] = () => undefined;
    const failed = new Promise<never>((_resolve, reject) => (fail = reject));
    const call: OpenCall = { fail, resumable: false };
    this.calls.set(toolCallId, call);
    const params = { name, arguments: input, _meta: { ...meta, [TOOL_CALL_ID]: toolCallId } };
    const answer = this.client.request({ method: 'tools/call', params }, CallToolResultSchema, {
      signal: stop.signal,
      // `timer` is what ends it: so its end can be told from an error of the same code that the server sends.
      timeout: timeoutMs + 60_000,
      // Asked for only so that something comes while it runs: proxies cut what is silent.
      onprogress: () => undefined,
      onresumptiontoken: () => (call.resumable = true),
    });
    try {
      return await Promise.race([answer, failed]);
    } catch (error) {
      throw this.endOf(error, signal, giveUp);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      this.calls.delete(toolCallId);
      answer.catch(() => undefined);
      failed.catch(() => undefined);
    }
  }

  /** Ends it, and what still runs on it; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.markUnusable();
    const { http } = this;
    if (http !== null && this.closed === null) {
      // What was given up must have been told, and the session ended; but nobody waits long for a server to agree.
      const farewell = Promise.allSettled(this.sends).then(() => http.terminateSession());
      await Promise.race([farewell.catch(() => undefined), afterMs(FAREWELL_MS)]);
    }
    await (http === null ? this.stdio?.close() : this.client.close());
  }

  private transport(): StdioTransport | StreamableHTTPClientTransport {
    const { server, given } = this.target;
    if ('command' in server) {
      const { command, args } = server;
      const onLog = (line: string): void => this.logLine(line);
      const { endMs } = this.parts;
      this.stdio = new StdioTransport({ command, args, env: given, maxMessageBytes: MAX_MESSAGE_BYTES, endMs, onLog });
      return this.stdio;
    }
    const http = httpTransport({
      url: server.url,
      headers: given,
      fetch: this.parts.fetch,
      maxMessageBytes: MAX_MESSAGE_BYTES,
      onAnswerEnd: (toolCallId, error) => this.answerEnded(toolCallId, error),
    });
    const send = http.send.bind(http);
    http.send = (message, options) => {
      const sent = send(message, options);
      const noted = sent.catch(() => undefined).finally(() => this.sends.delete(noted));
      this.sends.add(noted);
      return sent;
    };
    this.http = http;
    return http;
  }

  private async listTools(): Promise<readonly ListedTool[]> {
    if (this.client.getServerCapabilities()?.tools === undefined) return [];
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES && tools.length <= MAX_TOOLS; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const found = await this.client.request({ method: 'tools/list', params }, ListToolsResultSchema);
      tools.push(...found.tools);
      cursor = found.nextCursor;
      if (cursor === undefined) break;
    }
    if (tools.length > MAX_TOOLS || cursor !== undefined) {
      this.logger.warn({ most: MAX_TOOLS }, 'a tool server has more tools than are taken');
    }
    return tools.slice(0, MAX_TOOLS);
  }

  private endOf(error: unknown, signal: AbortSignal, giveUp: () => void): unknown {
    const failure = this.closed === null ? failureOf(error) : new CallFailed(this.closed, error);
    if (signal.aborted || failure.kind === 'timeout') {
      // The server is told before it is asked anything else.
      giveUp();
      void this.checkAfterGivingUp();
      return signal.aborted ? signal.reason : failure;
    }
    if (failure.kind !== 'refused' && failure.kind !== 'invalid') this.markUnusable();
    return failure;
  }

  /**
   * A process that does not answer any more is of no use to others. Over HTTP the stream of an answer that nobody waits for
   * can only be ended together with the others of its connection.
   */
  private async checkAfterGivingUp(): Promise<void> {
    if (this.http !== null) return this.markUnusable();
    await this.client.ping({ timeout: this.parts.pingMs }).catch(() => this.markUnusable());
  }

  private answerEnded(toolCallId: string, error: unknown): void {
    const call = this.calls.get(toolCallId);
    if (call === undefined) return;
    if (error instanceof BodyTooLarge) return call.fail(new CallFailed('too_large', error));
    const end = (): void => {
      if (!call.resumable) call.fail(new CallFailed('lost', error));
    };
    setTimeout(end, LAST_MESSAGE_MS).unref();
  }

  private noteError(error: Error): void {
    this.logger.debug({ err: hideInError(error, this.target.secrets) }, 'a tool server’s connection had an error');
    // Whose result it was is not known when there are several.
    if (error instanceof MessageTooLarge) this.markClosed(this.calls.size > 1 ? 'lost' : 'too_large');
    // The SDK does not say by its type that an answer will not go on.
    if (/^Maximum reconnection attempts/.test(error.message)) {
      this.markUnusable();
      for (const call of this.calls.values()) if (call.resumable) call.fail(new CallFailed('lost', error));
    }
  }

  private markClosed(kind: 'lost' | 'too_large'): void {
    this.closed ??= kind;
    this.markUnusable();
  }

  private markUnusable(): void {
    if (!this.isUsable) return;
    this.isUsable = false;
    this.onUnusable();
  }

  private logLine(line: string): void {
    if (++this.logLines > MAX_LOG_LINES) return;
    this.logger.debug({ line: hideSecrets(line, this.target.secrets) }, 'a tool server wrote to its standard error');
  }
}

const afterMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
