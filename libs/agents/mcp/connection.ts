import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { readVersion, type ByteHold, type Fetch, type Logger } from '#platform';
import { NoRoom, type RunContext } from '../harness.ts';
import { CallFailed, failureOf, limitOf, type Limit } from './call-failed.ts';
import { hideInError, hideSecrets } from './hide-secrets.ts';
import { httpTransport, TOOL_CALL_ID } from './http-transport.ts';
import { MessageTooLarge } from './message-lines.ts';
import { checkResult, type ServerResult } from './read-result.ts';
import { StdioTransport } from './stdio-transport.ts';
import type { ToolSandbox } from './sandbox.ts';
import { LIST_TOO_LARGE, ListTooLarge, MAX_LIST_BYTES, ToolList, type ToolListing } from './tool-list.ts';
import type { ReadyServer } from './tool-server.ts';

/** Largest message of a server; more is never kept. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Bytes of memory for each byte of a message: the message, its text, its values, and what is made of them. */
const BYTES_A_MESSAGE_BYTE = 4;
/** `tools/list_changed` can get lost with the stream that carries it, which HTTP servers need not even have. */
const LIST_AGE_MS = 60_000;
/** An answer's end is noticed before its last message has been read. */
const LAST_MESSAGE_MS = 1_000;
/** How many times the largest answer to a request a server may send: it may talk without being asked. */
const UNASKED = 2;
/** How many messages a server may send between two requests. Each costs time, however small it is. */
const MAX_MESSAGES = 10_000;
const FAREWELL_MS = 2_000;

export interface ConnectionParts {
  fetch: Fetch;
  sandbox: ToolSandbox;
  logger: Logger;
  /** Of `McpServersOptions`, like the next ones. */
  pingMs: number;
  endMs: number;
  maxAgeMs: number;
}

/** Memory of the organization whose manifest names the server, not of one Run: its Runs share the connection. */
export type ConnectionOwner = Pick<RunContext, 'agentId' | 'openHold'>;

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

type Listed = { listing: Promise<ToolListing>; at: number };

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
  private closed: 'lost' | Limit | null = null;
  /** One of the two, once it is opened. */
  private http: StreamableHTTPClientTransport | null = null;
  private stdio: StdioTransport | null = null;
  private readonly list = new ToolList();
  /** Memory of the list, as long as the connection keeps it. */
  private readonly listHold: ByteHold;
  private failList: (error: unknown) => void = () => undefined;
  /** Whether there has been no call since the list was asked for. */
  private isListAlone = false;
  /** Settles when the list that is read now is over. */
  private listing: Promise<unknown> = Promise.resolve();
  /** Bytes that the server may still send before the next request. */
  private unsent = UNASKED * MAX_LIST_BYTES;
  /** Messages since the last request. */
  private messages = 0;
  private age: NodeJS.Timeout | null = null;
  private sends = new Set<Promise<void>>();

  constructor(
    private readonly target: ReadyServer,
    private readonly parts: ConnectionParts,
    private readonly owner: ConnectionOwner,
  ) {
    this.listHold = owner.openHold();
    this.listHold.keep();
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
    // A process does not live for ever, however often it is used.
    if (this.stdio !== null) this.age = setTimeout(() => this.markUnusable(), this.parts.maxAgeMs).unref();
    await this.client.connect(transport, { timeout: timeoutMs });
  }

  /** All tools that the server has, or the first 1,000, or those of the first 2 MiB. */
  tools(): Promise<ToolListing> {
    if (this.listed !== null && performance.now() - this.listed.at < LIST_AGE_MS) return this.listed.listing;
    // One after the other, because the bytes of a page are counted for the list that is read.
    const listed: Listed = { listing: this.listing.then(() => this.listTools()), at: performance.now() };
    this.listed = listed;
    this.listing = listed.listing.catch(() => undefined);
    // Asking is cheap on a new connection, and this one may have lost its session.
    listed.listing.catch(() => this.markUnusable());
    return listed.listing;
  }

  /** Calls a tool once. Rejects with CallFailed, and with the signal's reason at its abort. */
  async call({ name, input, toolCallId, meta, timeoutMs, signal }: ToolRequest): Promise<ServerResult> {
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
    this.isListAlone = false;
    this.expect(MAX_MESSAGE_BYTES);
    const params = { name, arguments: input, _meta: { ...meta, [TOOL_CALL_ID]: toolCallId } };
    const asked = this.client.request({ method: 'tools/call', params }, ResultSchema, {
      signal: stop.signal,
      // `timer` is what ends it: so its end can be told from an error of the same code that the server sends.
      timeout: timeoutMs + 60_000,
      // Asked for only so that something comes while it runs: proxies cut what is silent.
      onprogress: () => undefined,
      onresumptiontoken: () => (call.resumable = true),
    });
    const answer = asked.then(checkResult);
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
    this.listHold.release();
    if (this.age !== null) clearTimeout(this.age);
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
      const { command } = this.target;
      if (command === null) throw new Error('A program without a path is never started.');
      const { args, network } = server;
      const { endMs, sandbox } = this.parts;
      this.stdio = new StdioTransport({
        launch: () => sandbox.launch({ command, args, env: given, network }),
        maxBytes: () => this.maxMessageBytes(),
        onBytes: (bytes) => this.takeBytes(bytes),
        onMessages: (count) => this.takeMessages(count),
        onListPage: (bytes) => this.list.take(bytes),
        onHeld: this.holdMessage(),
        endMs,
        onLog: (line) => this.logLine(line),
      });
      return this.stdio;
    }
    const http = httpTransport({
      url: server.url,
      headers: given,
      fetch: this.parts.fetch,
      maxMessageBytes: MAX_MESSAGE_BYTES,
      maxListBytes: MAX_LIST_BYTES,
      onBytes: (bytes) => this.takeBytes(bytes),
      onMessages: (count) => this.takeMessages(count),
      onListPage: (bytes) => this.list.take(bytes),
      holdMessage: () => this.holdMessage(),
      onAnswerEnd: (toolCallId, error) => this.answerEnded(toolCallId, error),
      onListEnd: (error) => limitOf(error) !== null && this.failList(error),
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

  private async listTools(): Promise<ToolListing> {
    if (this.client.getServerCapabilities()?.tools === undefined) return { tools: [], leftOut: [], isCut: false };
    this.expect(MAX_LIST_BYTES);
    this.isListAlone = this.calls.size === 0;
    // Whoever asked has stopped waiting then.
    const signal = AbortSignal.timeout(this.target.server.startMs);
    const failed = new Promise<never>((_resolve, reject) => (this.failList = reject));
    failed.catch(() => undefined);
    const reading = this.list.read((cursor) =>
      this.client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, ResultSchema, {
        signal,
      }),
    );
    try {
      const listing = await Promise.race([reading, failed]);
      const { tools, isCut } = listing;
      if (isCut) this.logger.warn({ tools: tools.length }, 'a tool server has more tools than are taken');
      const bytes = this.list.bytes * BYTES_A_MESSAGE_BYTE;
      if (!this.listHold.growTo(bytes)) throw new NoRoom(bytes);
      return listing;
    } catch (error) {
      reading.catch(() => undefined);
      const limit = limitOf(error) ?? this.closed;
      if (limit === 'no_room')
        throw error instanceof NoRoom ? error : new NoRoom(MAX_LIST_BYTES * BYTES_A_MESSAGE_BYTE);
      // Bytes and messages are counted for the whole connection. A call may have caused the error, and that does not last.
      throw limit === 'too_large' && this.isListAlone ? new ListTooLarge(LIST_TOO_LARGE, { cause: error }) : error;
    }
  }

  /** Without a call the largest message is a list of tools. */
  private maxMessageBytes(): number {
    return this.calls.size > 0 ? MAX_MESSAGE_BYTES : MAX_LIST_BYTES;
  }

  /** Returns what is told how much of a message has come. It throws NoRoom. */
  private holdMessage(): (bytes: number) => void {
    const hold = this.owner.openHold();
    return (bytes) => {
      const needed = bytes * BYTES_A_MESSAGE_BYTE;
      if (!hold.growTo(needed)) throw new NoRoom(needed);
    };
  }

  /** Lets the server send an answer of so many bytes, besides those to the calls that it has. */
  private expect(bytes: number): void {
    const most = this.calls.size * MAX_MESSAGE_BYTES + MAX_LIST_BYTES;
    this.unsent = UNASKED * Math.min(this.unsent / UNASKED + bytes, most);
    this.messages = 0;
  }

  /** Throws MessageTooLarge when it sends more than anybody has asked for. */
  private takeBytes(bytes: number): void {
    this.unsent -= bytes;
    if (this.unsent < 0) throw new MessageTooLarge('The tool server sends more than it was asked for.');
  }

  /** Throws MessageTooLarge likewise. */
  private takeMessages(count: number): void {
    this.messages += count;
    if (this.messages <= MAX_MESSAGES) return;
    // The SDK would ask again and again for the rest of a stream.
    this.markUnusable();
    throw new MessageTooLarge('The tool server sends more messages than it was asked for.');
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
    const limit = limitOf(error);
    if (limit !== null) return call.fail(new CallFailed(limit, error));
    const end = (): void => {
      if (!call.resumable) call.fail(new CallFailed('lost', error));
    };
    setTimeout(end, LAST_MESSAGE_MS).unref();
  }

  private noteError(error: Error): void {
    // Hiding takes time, and a server can cause many errors.
    if (this.logger.isLevelEnabled('debug'))
      this.logger.debug({ err: hideInError(error, this.target.secrets) }, 'a tool server’s connection had an error');
    const limit = limitOf(error);
    if (limit === 'over_limit') {
      this.logger.warn({ reason: error.message }, 'tool server killed');
      return this.markClosed(limit);
    }
    // Whose result it was is not known when there are several.
    if (limit !== null) this.markClosed(this.calls.size > 1 ? 'lost' : limit);
    // The SDK does not say by its type that an answer will not go on.
    if (/^Maximum reconnection attempts/.test(error.message)) {
      this.markUnusable();
      for (const call of this.calls.values()) if (call.resumable) call.fail(new CallFailed('lost', error));
    }
  }

  private markClosed(kind: 'lost' | Limit): void {
    this.closed ??= kind;
    this.markUnusable();
  }

  private markUnusable(): void {
    if (!this.isUsable) return;
    this.isUsable = false;
    this.onUnusable();
  }

  private logLine(line: string): void {
    if (!this.logger.isLevelEnabled('debug')) return;
    this.logger.debug({ line: hideSecrets(line, this.target.secrets) }, 'a tool server wrote to its standard error');
  }
}

const afterMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
