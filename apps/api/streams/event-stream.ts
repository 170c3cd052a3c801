import type { ServerResponse } from 'node:http';
import { KEEPALIVE, preamble, THREAD_IDLE_FRAME, threadErrorFrame } from '#contract';
import type { LogPage } from '#event-store';
import type { LiveHub, LogReader, ReaderEnd, Reading } from '#live';
import type { Instant, PolicyWatch } from '#platform';
import { errorEnvelope, notFound, type ApiError } from '../http/http-errors.ts';

/** The parameters of one stream. */
export interface StreamRequest {
  threadId: string;
  afterEventId: string;
  /** The page after it, if it was read; null if the hub should read it. */
  firstPage: LogPage | null;
  untilIdle: boolean;
  extended: boolean;
  /** The caller's header, kept to check access again. */
  authorization: string | undefined;
  agentId: string;
  /** The user with browser tokens, whose streams have a separate limit; null for other callers. */
  userKey: string | null;
  tokenId: string;
  organizationId: string;
  /** When the caller was last known to be allowed to read. */
  allowedAt: Instant;
}

/** The dependencies of a stream. */
export interface StreamDependencies {
  hub: LiveHub;
  watch: PolicyWatch;
}

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** Spreads the clients of a stopped pod over two seconds, so that they do not all reconnect together. */
const RETRY_FROM_MS = 1_000;
const RETRY_TO_MS = 3_000;

/**
 * How long a confirmed access is valid, milliseconds. Access is checked each second (open-streams.ts) on data at most 2.5 s old,
 * so no entry is sent later than 5 s after a revocation. This holds even if no check ran: the process was suspended, or the
 * database unavailable.
 */
const ALLOWED_MS = 2_000;

/** Ends the stream of a reader that takes no byte for this time, and closes its connection after the same time again. */
const STALLED_MS = 5_000;

/** One open response. At most one page of the hub waits for a slow reader. The rest is read when the reader has taken it. */
export class EventStream implements LogReader {
  readonly threadId: string;
  readonly afterEventId: string;
  readonly untilIdle: boolean;
  readonly extended: boolean;
  readonly authorization: string | undefined;
  readonly agentId: string;
  private readonly reading: Reading;
  private readonly watch: PolicyWatch;
  private allowedAt: Instant;
  /** Frames that arrived after the last confirmed access expired. */
  private held: Buffer | null = null;
  private lastWriteAt = performance.now();

  constructor(
    private readonly response: ServerResponse,
    { threadId, afterEventId, firstPage, untilIdle, extended, authorization, agentId, allowedAt }: StreamRequest,
    { hub, watch }: StreamDependencies,
  ) {
    this.threadId = threadId;
    this.afterEventId = afterEventId;
    this.untilIdle = untilIdle;
    this.extended = extended;
    this.authorization = authorization;
    this.agentId = agentId;
    this.allowedAt = allowedAt;
    this.watch = watch;
    response.socket?.setNoDelay(true);
    response.writeHead(200, STREAM_HEADERS);
    response.write(preamble(Math.round(RETRY_FROM_MS + Math.random() * (RETRY_TO_MS - RETRY_FROM_MS))));
    response.on('drain', () => this.drained());
    response.on('timeout', () => this.stalled());
    // 'close' follows a broken connection.
    response.on('error', () => undefined);
    response.on('close', () => this.reading.close());
    this.reading = hub.open(this, firstPage);
  }

  /** True once the stream has ended, even if the reader has not taken all bytes yet. */
  get isEnded(): boolean {
    return this.response.writableEnded || this.response.destroyed;
  }

  deliver(frames: Buffer): boolean {
    if (this.watch.ageOf(this.allowedAt) >= ALLOWED_MS) {
      this.held = frames;
      return false;
    }
    const hasRoom = this.write(frames);
    // The socket's timer counts only time in which the reader takes nothing, and costs idle streams nothing.
    if (!hasRoom) this.response.setTimeout(STALLED_MS);
    return hasRoom;
  }

  end(reason: ReaderEnd): void {
    // Held frames are not delivered yet. A caller with access resumes and gets them.
    if (reason === 'idle') this.finish(this.held === null ? THREAD_IDLE_FRAME : '');
    else this.refuse(notFound('Thread'));
  }

  /** Confirms the caller's access as of `at`, and delivers held frames. */
  allow(at: Instant): void {
    this.allowedAt = at;
    const { held } = this;
    if (held === null || this.isEnded) return;
    this.held = null;
    if (this.deliver(held)) this.reading.resume();
  }

  /** Ends the stream because the caller has lost access. */
  refuse(error: ApiError): void {
    this.finish(threadErrorFrame(errorEnvelope(error, this.extended)));
  }

  /** Ends the stream and its connection on shutdown, so that the connection does not wait for another request. */
  close(): void {
    const { socket } = this.response;
    this.response.once('finish', () => socket?.destroySoon());
    this.finish();
  }

  /** Ends the response completely. The client can resume it with the last id. */
  finish(lastFrame = ''): void {
    this.reading.close();
    if (this.isEnded) return;
    this.response.end(lastFrame);
    this.response.setTimeout(STALLED_MS);
  }

  /** Sends a keepalive after a silence, unless earlier bytes still wait for the reader. */
  keepAlive(now: number, silenceMs: number): void {
    if (now - this.lastWriteAt < silenceMs || this.isEnded || this.response.writableLength > 0) return;
    this.write(KEEPALIVE);
  }

  private write(frames: Buffer | string): boolean {
    this.lastWriteAt = performance.now();
    return this.response.write(frames);
  }

  private drained(): void {
    if (this.isEnded) return;
    this.response.setTimeout(0);
    if (this.held === null) this.reading.resume();
  }

  private stalled(): void {
    if (this.isEnded) this.response.destroy();
    else this.finish();
  }
}
