import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { BOUNDS } from '#domain';
import { readVersion, type ByteHold, type Fetch, type Logger } from '#platform';
import { NoRoom, type RunContext } from '../harness.ts';
import { CallFailed, failureOf, isSessionLost, limitOf, type Limit } from './call-failed.ts';
import { hideInError, hideSecrets } from './hide-secrets.ts';
import { httpTransport, TOOL_CALL_ID } from './http-transport.ts';
import { MessageTooLarge } from './message-lines.ts';
import { checkResult, type ServerResult } from './read-result.ts';
import { StdioTransport } from './stdio-transport.ts';
import type { ToolSandbox } from './sandbox.ts';
import { explainEnd } from './server-ending.ts';
import { LIST_TOO_LARGE, ListTooLarge, ToolList, type ToolListing } from './tool-list.ts';
import type { ReadyServer } from './tool-server.ts';

const MAX_MESSAGE_BYTES = BOUNDS.toolServers.message.value;
const MAX_LIST_BYTES = BOUNDS.toolServers.list.value;
/** Bytes of memory for each byte of a message: the message, its text, its values, and the result. */
const BYTES_A_MESSAGE_BYTE = 4;
/** Lists expire, because `tools/list_changed` can get lost with its stream, which is optional for HTTP servers. */
const LIST_AGE_MS = 60_000;
/** How long the last message may take after the end of its answer, because the end is noticed first. */
const LAST_MESSAGE_MS = 1_000;
const UNASKED = BOUNDS.toolServers.unasked.value;
const MAX_MESSAGES = BOUNDS.toolServers.messages.value;
const FAREWELL_MS = 2_000;

export interface ConnectionParts {
  fetch: Fetch;
  sandbox: ToolSandbox;
  logger: Logger;
  /** From `McpServersOptions`, like the next ones. */
  pingMs: number;
  endMs: number;
  maxAgeMs: number;
}

/** Memory belongs to the organization, not to one Run, because the Runs of an agent share the connection. */
export type ConnectionOwner = Pick<RunContext, 'agentId' | 'openHold'>;

export interface ToolRequest {
  /** The server's own name of the tool. */
  name: string;
  input: Record<string, unknown>;
  toolCallId: string;
  /** Further fields of `_meta`. */
  meta: Record<string, string>;
  timeoutMs: number;
  signal: AbortSignal;
}

interface OpenCall {
  fail: (failure: CallFailed) => void;
  /** Whether the events of the answer have ids, so that the SDK can resume it if it breaks off. */
  resumable: boolean;
}

type Listed = { listing: Promise<ToolListing>; at: number };

/** A connection to one tool server. It is opened once, and never again after its end. */
export class McpConnection {
  /** Whether new calls may use it. */
  isUsable = true;
  /** Called once, when new calls may no longer use it. */
  onUnusable: () => void = () => undefined;

  private readonly client = new Client({ name: 'spool', version: readVersion() });
  private readonly calls = new Map<string, OpenCall>();
  private readonly logger: Logger;
  private listed: Listed | null = null;
  private closed: 'lost' | Limit | null = null;
  /** One of the two transports is set once it is open. */
  private http: StreamableHTTPClientTransport | null = null;
  private stdio: StdioTransport | null = null;
  private readonly list = new ToolList();
  /** The memory of the list while the connection keeps it. */
  private readonly listHold: ByteHold;
  private failList: (error: unknown) => void = () => undefined;
  /** Whether there was no call since the list was requested. */
  private isListAlone = false;
  /** Settles when the current reading of the list has ended. */
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

  /** Connects and initializes. Rejects with any error; it may contain secrets. */
  async open(timeoutMs: number): Promise<void> {
    const transport = this.transport();
    // Limits the lifetime of a process, however often it is used.
    if (this.stdio !== null) this.age = setTimeout(() => this.markUnusable(), this.parts.maxAgeMs).unref();
    await this.client.connect(transport, { timeout: timeoutMs }).catch((error: unknown) => {
      throw this.explained(error);
    });
  }

  private explained(error: unknown): unknown {
    return this.stdio === null ? error : explainEnd(error, this.stdio.ending, this.target.secrets);
  }

  /** Returns the server's tools, at most the first 1,000 or those of the first 2 MiB. */
  tools(): Promise<ToolListing> {
    if (this.listed !== null && performance.now() - this.listed.at < LIST_AGE_MS) return this.listed.listing;
    // Lists are read one after the other, because the bytes of a page count for the current list.
    const listed: Listed = { listing: this.listing.then(() => this.listTools()), at: performance.now() };
    this.listed = listed;
    this.listing = listed.listing.catch(() => undefined);
    // This connection may have lost its session, and asking again on a new one is cheap.
    listed.listing.catch(() => this.markUnusable());
    return listed.listing;
  }

  /** Calls a tool once. Rejects with CallFailed, and with the signal's reason at its abort. */
  async call({ name, input, toolCallId, meta, timeoutMs, signal }: ToolRequest): Promise<ServerResult> {
    signal.throwIfAborted();
    if (this.closed !== null) throw new CallFailed('not_sent');
    // A controller for this call alone, because the SDK never removes its listener.
    const stop = new AbortController();
    const giveUp = (): void => stop.abort('The call was abandoned.');
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
      // Longer than `timer`, which ends the call, so that a timeout differs from a server's error with the same code.
      timeout: timeoutMs + 60_000,
      // Requests progress only to keep the connection active, because proxies cut silent connections.
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

  /** Closes it and ends the calls on it. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.markUnusable();
    this.listHold.release();
    if (this.age !== null) clearTimeout(this.age);
    const { http } = this;
    if (http !== null && this.closed === null) {
      // Sends the pending cancellations and ends the session, but does not wait long for the server.
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
    // The reader of the list has stopped waiting then.
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
      if (isCut) this.logger.warn({ tools: tools.length }, 'tool list truncated');
      const bytes = this.list.bytes * BYTES_A_MESSAGE_BYTE;
      if (!this.listHold.growTo(bytes)) throw new NoRoom(bytes);
      return listing;
    } catch (error) {
      reading.catch(() => undefined);
      const limit = limitOf(error) ?? this.closed;
      if (limit === 'no_room')
        throw error instanceof NoRoom ? error : new NoRoom(MAX_LIST_BYTES * BYTES_A_MESSAGE_BYTE);
      // The limits count for the whole connection, so a call may have caused the error, which is then not lasting.
      throw limit === 'too_large' && this.isListAlone ? new ListTooLarge(LIST_TOO_LARGE, { cause: error }) : error;
    }
  }

  /** Without a call, the largest message is a list of tools. */
  private maxMessageBytes(): number {
    return this.calls.size > 0 ? MAX_MESSAGE_BYTES : MAX_LIST_BYTES;
  }

  /** Returns a callback for the number of bytes of a message so far. It throws NoRoom. */
  private holdMessage(): (bytes: number) => void {
    const hold = this.owner.openHold();
    return (bytes) => {
      const needed = bytes * BYTES_A_MESSAGE_BYTE;
      if (!hold.growTo(needed)) throw new NoRoom(needed);
    };
  }

  /** Allows the server an answer of so many bytes, in addition to those of its current calls. */
  private expect(bytes: number): void {
    const most = this.calls.size * MAX_MESSAGE_BYTES + MAX_LIST_BYTES;
    this.unsent = UNASKED * Math.min(this.unsent / UNASKED + bytes, most);
    this.messages = 0;
  }

  /** Throws MessageTooLarge if the server sends more than was requested. */
  private takeBytes(bytes: number): void {
    this.unsent -= bytes;
    if (this.unsent < 0) throw new MessageTooLarge('The tool server sent more data than was requested.');
  }

  /** Throws MessageTooLarge if the server sends too many messages. */
  private takeMessages(count: number): void {
    this.messages += count;
    if (this.messages <= MAX_MESSAGES) return;
    // The SDK would request the rest of the stream again and again.
    this.markUnusable();
    throw new MessageTooLarge('The tool server sent too many messages.');
  }

  private endOf(error: unknown, signal: AbortSignal, giveUp: () => void): unknown {
    const failure = this.closed === null ? failureOf(error) : new CallFailed(this.closed, this.explained(error));
    if (signal.aborted || failure.kind === 'timeout') {
      // Sends the cancellation before any other request.
      giveUp();
      void this.checkAfterGivingUp();
      return signal.aborted ? signal.reason : failure;
    }
    const mayGoOn = failure.kind === 'refused' || failure.kind === 'invalid';
    if (!mayGoOn || isSessionLost(failure.cause)) this.markUnusable();
    return failure;
  }

  /**
   * Pings a process, because one that no longer responds must not get other calls. Over HTTP, the stream of an abandoned answer can
   * only be closed together with its whole connection.
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
    // Hiding secrets takes time, and a server can cause many errors.
    if (this.logger.isLevelEnabled('debug'))
      this.logger.debug({ err: hideInError(error, this.target.secrets) }, 'tool server error');
    const limit = limitOf(error);
    if (limit === 'over_limit') {
      this.logger.warn({ reason: error.message }, 'tool server killed');
      return this.markClosed(limit);
    }
    // With several calls, it is not known whose result it was.
    if (limit !== null) this.markClosed(this.calls.size > 1 ? 'lost' : limit);
    // The SDK has no error type for an answer that cannot be resumed.
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
    this.logger.debug({ line: hideSecrets(line, this.target.secrets) }, 'tool server wrote to standard error');
  }
}

const afterMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
