import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { parseError, SpoolError } from './errors.ts';
import type { Call, Http } from './http.ts';
import { path } from './path.ts';
import type { LogEntry } from './types.ts';
import { delay, jitteredBackoff } from './wait.ts';

/**
 * `catching-up`: it reads entries from before it was opened. `live`: it has read all of them. `reconnecting`: the connection broke
 * or could not be opened; `error` says why. `ended`: it was closed, has ended with `until`, or failed.
 */
export type StreamStatus = 'catching-up' | 'live' | 'reconnecting' | 'ended';

export interface StreamOptions {
  /** Starts after this entry, such as the `lastEventId` of a page of messages. Default: with the first entry. */
  after?: string | undefined;
  /** Ends when no Run is active and all entries are delivered. A Run that waits for a person is active. */
  until?: 'idle' | undefined;
  /** Called with each new status, and with each new reason why it is reconnecting or has failed. */
  onStatus?: ((status: StreamStatus, error: SpoolError | null) => void) | undefined;
  /** Closes the stream. */
  signal?: AbortSignal | undefined;
}

const FIRST = '0'.repeat(26);
/** The service sends a line at least every 15 s, so the connection is dead after three missing ones. */
const SILENCE_MS = 45_000;
/** A connection that lasted this long was good, even if nothing happened in the Thread. */
const HEALTHY_MS = 5_000;

/**
 * The entries of a Thread, each once and in order. Resumes after lost connections, stopped processes, 429 and 5xx, without a limit
 * of attempts. Leave the loop or call `close` to end it. That closes the connection and changes nothing else: Runs continue.
 */
export class ThreadStream implements AsyncIterable<LogEntry> {
  /** The last entry that was handled. */
  lastEventId: string;
  /** Why it is reconnecting or has failed; else null. */
  error: SpoolError | null = null;
  private current: StreamStatus = 'catching-up';
  private readonly closing = new AbortController();
  private isComplete = false;
  private isRead = false;
  private readonly path: string;

  constructor(
    private readonly http: Http,
    threadId: string,
    private readonly options: StreamOptions,
  ) {
    this.path = path`/threads/${threadId}/events/stream`;
    this.lastEventId = options.after ?? FIRST;
    if (options.signal?.aborted) this.close();
    else options.signal?.addEventListener('abort', this.close);
  }

  get status(): StreamStatus {
    return this.current;
  }

  readonly close = (): void => this.end(this.current === 'ended' ? this.error : null);

  /** Throws SpoolError if the service refuses the stream, for example with 404, and TypeError if it is read twice. */
  async *[Symbol.asyncIterator](): AsyncGenerator<LogEntry, void, undefined> {
    if (this.isRead) throw new TypeError('A stream can be read once; open another one after its lastEventId.');
    this.isRead = true;
    try {
      for (let failures = 0; !this.isOver;) {
        const beganAt = performance.now();
        try {
          for await (const entry of this.connect()) {
            failures = 0;
            yield entry;
            // Set after the loop has handled the entry. A stream after it thus begins with an entry that was not handled.
            this.lastEventId = entry.id;
          }
          if (this.isOver) return;
          this.enter('reconnecting', null);
        } catch (error) {
          if (this.closing.signal.aborted) return;
          if (!(error instanceof SpoolError && error.isRetryable)) throw error;
          this.enter('reconnecting', error);
        }
        // A proxy that ends idle connections is no failure of the service.
        if (performance.now() - beganAt >= HEALTHY_MS) failures = 0;
        await delay(jitteredBackoff(++failures, this.error?.retryAfter), this.closing.signal).catch(() => undefined);
      }
    } catch (error) {
      this.end(error as SpoolError);
      throw error;
    } finally {
      this.close();
    }
  }

  private get isOver(): boolean {
    return this.isComplete || this.closing.signal.aborted;
  }

  private end(error: SpoolError | null): void {
    this.options.signal?.removeEventListener('abort', this.close);
    this.closing.abort();
    this.enter('ended', error);
  }

  private enter(status: StreamStatus, error: SpoolError | null): void {
    const isSame = status === this.current && error === this.error;
    if (isSame || this.current === 'ended') return;
    this.current = status;
    this.error = error;
    this.options.onStatus?.(status, error);
  }

  /** Yields the entries of one connection. Returns when it ends, and throws when it breaks or is refused. */
  private async *connect(): AsyncGenerator<LogEntry, void, undefined> {
    const connection = new AbortController();
    const stop = (): void => connection.abort();
    this.closing.signal.addEventListener('abort', stop, { once: true });
    try {
      const call: Call = {
        ...{ method: 'GET', path: this.path, query: { extended: 'true', until: this.options.until } },
        ...{ headers: { 'Last-Event-ID': this.lastEventId }, signal: connection.signal },
      };
      const response = await this.http.sendOnce(call, async (opened) => opened);
      if (response.status === 204) return void (this.isComplete = true);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null) {
        throw new SpoolError('no_response', 'The response is not a stream of events.', { status: response.status });
      }
      const newest = response.headers.get('spool-last-event-id');
      this.catchUp(newest);
      for await (const frame of framesOf(response.body, connection, () => this.enter('live', null))) {
        const entry = this.take(frame);
        if (entry !== null) {
          yield entry;
          this.catchUp(newest);
        } else if (this.isComplete) return;
      }
    } finally {
      this.closing.signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** Earlier releases send no header. Then the first keepalive shows that nothing is left to send. */
  private catchUp(newest: string | null): void {
    this.enter(newest !== null && this.lastEventId >= newest ? 'live' : 'catching-up', null);
  }

  /** Returns the entry of a frame, or null. */
  private take({ event, data }: EventSourceMessage): LogEntry | null {
    if (event === 'thread.event') {
      const entry = JSON.parse(data) as LogEntry;
      return entry.id > this.lastEventId ? entry : null;
    }
    if (event === 'thread.idle') this.isComplete = true;
    if (event === 'thread.error') this.fail(data);
    return null;
  }

  private fail(data: string): void {
    const { code = 'invalid_response', message = data, reason } = parseError(data) ?? {};
    // The next request gets a 401 and renews the token.
    const canResume = reason === 'token_expired' && this.http.canRenew;
    if (!canResume) throw new SpoolError(code, message, { reason });
  }
}

/** Yields the frames of a response. Throws SpoolError when it breaks or is silent for too long. */
async function* framesOf(
  body: ReadableStream<Uint8Array>,
  connection: AbortController,
  onKeepalive: () => void,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const frames: EventSourceMessage[] = [];
  const onComment = (comment: string): void => {
    if (comment.trim() === 'keepalive') onKeepalive();
  };
  const parser = createParser({ onEvent: (frame) => frames.push(frame), onComment });
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    // Runs only while waiting for bytes: a slow loop does not mean that the service is silent.
    const silence = setTimeout(() => connection.abort(), SILENCE_MS);
    const { done, value } = await reader
      .read()
      .catch((cause: unknown) => {
        throw new SpoolError('no_response', 'The stream broke.', { cause });
      })
      .finally(() => clearTimeout(silence));
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
    while (frames.length > 0) yield frames.shift()!;
  }
}
