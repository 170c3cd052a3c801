import type { ServerResponse } from 'node:http';
import { KEEPALIVE, preamble, THREAD_IDLE_FRAME, threadErrorFrame } from '#contract';
import type { LiveHub, LogReader, ReaderEnd, Reading } from '#live';
import type { Instant, PolicyWatch } from '#platform';
import { errorEnvelope, notFound, type ApiError } from '../http/http-errors.ts';

/** What a stream was opened with. */
export interface StreamRequest {
  threadId: string;
  afterEventId: string;
  knownUpTo: number;
  untilIdle: boolean;
  extended: boolean;
  /** The header that the caller sent, to ask again whether it is still good. */
  authorization: string | undefined;
  agentId: string;
  tokenId: string;
  organizationId: string;
  /** When the caller was last known to be allowed to read. */
  allowedAt: Instant;
}

/** What a stream needs of the process. */
export interface StreamSurroundings {
  hub: LiveHub;
  watch: PolicyWatch;
}

export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** Clients that come back all at once, after a pod has gone, are spread over these two seconds. */
const RETRY_FROM_MS = 1_000;
const RETRY_TO_MS = 3_000;

/**
 * For how long it holds that the caller may read, milliseconds. Each second it is asked again (open-streams.ts), of what is
 * at most 2.5 s old: so nobody is given anything 5 s after they lost access, also where nobody could ask, because the process
 * was suspended or the database away.
 */
const ALLOWED_MS = 2_000;

/** A reader that takes not one byte for so long is ended, and after as long again cut off. */
const STALLED_MS = 5_000;

/**
 * One open response: frames in, bytes out. What waits for a slow reader is what the hub gave it at once, one page; the rest
 * it reads when it has taken that.
 */
export class EventStream implements LogReader {
  readonly threadId: string;
  readonly afterEventId: string;
  readonly knownUpTo: number;
  readonly untilIdle: boolean;
  readonly extended: boolean;
  readonly authorization: string | undefined;
  readonly agentId: string;
  private readonly reading: Reading;
  private readonly watch: PolicyWatch;
  private allowedAt: Instant;
  /** What came while it was not known whether the caller may still read. */
  private held: Buffer | null = null;
  private lastWriteAt = performance.now();

  constructor(
    private readonly response: ServerResponse,
    { threadId, afterEventId, knownUpTo, untilIdle, extended, authorization, agentId, allowedAt }: StreamRequest,
    { hub, watch }: StreamSurroundings,
  ) {
    this.threadId = threadId;
    this.afterEventId = afterEventId;
    this.knownUpTo = knownUpTo;
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
    // A broken connection is told by 'close'.
    response.on('error', () => undefined);
    response.on('close', () => this.reading.close());
    this.reading = hub.open(this);
  }

  /** Ended, though not all may have been taken yet. */
  get isEnded(): boolean {
    return this.response.writableEnded || this.response.destroyed;
  }

  deliver(frames: Buffer): boolean {
    if (this.watch.ageOf(this.allowedAt) >= ALLOWED_MS) {
      this.held = frames;
      return false;
    }
    const hasRoom = this.write(frames);
    // The socket's own timer counts only time in which nothing at all is taken, and costs idle streams nothing.
    if (!hasRoom) this.response.setTimeout(STALLED_MS);
    return hasRoom;
  }

  end(reason: ReaderEnd): void {
    // With something held it is not all delivered: the caller comes back for it, if they may.
    if (reason === 'idle') this.finish(this.held === null ? THREAD_IDLE_FRAME : '');
    else this.refuse(notFound('Thread'));
  }

  /** The caller may still read, as was asked at that moment. */
  allow(at: Instant): void {
    this.allowedAt = at;
    const { held } = this;
    if (held === null || this.isEnded) return;
    this.held = null;
    if (this.deliver(held)) this.reading.resume();
  }

  /** The caller may no longer read. */
  refuse(error: ApiError): void {
    this.finish(threadErrorFrame(errorEnvelope(error)));
  }

  /** Ends in good order because the process stops: the connection goes too, for it must not wait for another request. */
  close(): void {
    const { socket } = this.response;
    this.response.once('finish', () => socket?.destroySoon());
    this.finish();
  }

  /** Ends in good order, to be resumed by the last id. */
  finish(lastFrame = ''): void {
    this.reading.close();
    if (this.isEnded) return;
    this.response.end(lastFrame);
    this.response.setTimeout(STALLED_MS);
  }

  /** Breaks a silence; one who has not taken what came before needs no sign of life. */
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
