import { ownTurn, pauseIfLong } from '../process/own-turn.ts';

/** A response, or one event of a stream, exceeds the limit. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

export interface BodyLimit {
  /** The limit of the body, or of each event in a stream of server-sent events, which may be endless. */
  maxBytes: number;
  /**
   * The bounds of one turn, in which the reader parses all that is passed on together: at most `events` events. The end of an
   * event or body of more than `bytes` is passed on in a separate turn.
   */
  turn: { events: number; bytes: number };
  /** Whether the body is read as server-sent events. Default: by its type. */
  isStream?: boolean;
  /** Called with each chunk before it is kept. A throw ends the body with that error. */
  onChunk?: (piece: Uint8Array) => void;
  /** Called with the bytes received of the body or the current event; 0 at the end. A throw ends the body with that error. */
  onHeld?: (bytes: number) => void;
  /** Called with the number of events of a stream before they are passed on. A throw ends the body with that error. */
  onEvents?: (count: number) => void;
  /** Called when the body has ended or failed, but not when the reader cancels it. */
  onEnd?: (error?: unknown) => void;
}

/** Returns the response with a body that fails with BodyTooLarge beyond the limit. */
export function limitBody(
  response: Response,
  {
    maxBytes,
    turn,
    isStream = isEventStream(response),
    onChunk = () => undefined,
    onHeld = () => undefined,
    onEvents = () => undefined,
    onEnd = () => undefined,
  }: BodyLimit,
): Response {
  if (response.body === null) return response;
  const counter = isStream ? new EventCounter(turn.events) : new ByteCounter();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  /** Bytes of the event, or of the whole body, that the reader parses next. */
  let whole = 0;
  /** The part of a chunk that is passed on later, because the part before it has many events. */
  let rest: Uint8Array | null = null;
  /** Returns the next chunk received; null at the end. */
  const read = async (): Promise<Uint8Array | null> => {
    const { done, value } = await reader.read();
    if (done) return null;
    onChunk(value);
    return value;
  };
  /** Returns the next part to pass on; null at the end. */
  const next = async (): Promise<Uint8Array | null> => {
    // A chunk may be as small as one event, and many arrive in one turn.
    await pauseIfLong();
    const piece = rest ?? (await read());
    const { length, events } = piece === null ? { length: 0, events: 0 } : counter.take(piece);
    rest = piece === null || length === piece.length ? null : piece.subarray(length);
    if (piece !== null) onHeld(counter.bytes + (rest?.length ?? 0));
    if (events > 0) onEvents(events);
    if (counter.most > maxBytes) throw new BodyTooLarge(`The response is larger than ${maxBytes} bytes.`);
    whole += length;
    const isWhole = piece === null || events > 0;
    if (isWhole && whole > turn.bytes) await ownTurn();
    if (isWhole) whole = 0;
    return piece === null ? null : piece.subarray(0, length);
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const piece = await next();
        if (piece !== null) return controller.enqueue(piece);
        controller.close();
        onHeld(0);
        onEnd();
      } catch (error) {
        onHeld(0);
        reader.cancel(error).catch(() => undefined);
        controller.error(error);
        onEnd(error);
      }
    },
    cancel: (reason) => {
      onHeld(0);
      return reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers: new Headers([...headers]) });
}

function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');
}

/** The length of the counted part of a chunk, and the number of events that end in it. */
interface Counted {
  length: number;
  events: number;
}

/** `most`: bytes that count against the limit. `bytes`: bytes of the body or the current event. */
class ByteCounter {
  bytes = 0;

  get most(): number {
    return this.bytes;
  }

  take({ length }: Uint8Array): Counted {
    this.bytes += length;
    return { length, events: 0 };
  }
}

const LF = 10;
const CR = 13;

/** An event ends with an empty line; lines end with LF, CR or both. */
class EventCounter {
  most = 0;
  bytes = 0;
  private lineIsEmpty = true;
  private last = 0;

  constructor(private readonly mostEvents: number) {}

  /** Counts a chunk up to the last event that may be passed on with it. */
  take(piece: Uint8Array): Counted {
    let events = 0;
    let i = 0;
    for (; i < piece.length && events < this.mostEvents; i++) {
      const byte = piece[i] ?? 0;
      this.bytes++;
      const isSecondHalf = byte === LF && this.last === CR;
      this.last = byte;
      if (byte !== LF && byte !== CR) this.lineIsEmpty = false;
      else if (!isSecondHalf) {
        if (this.lineIsEmpty) {
          events++;
          this.most = Math.max(this.most, this.bytes);
          this.bytes = 0;
        }
        this.lineIsEmpty = true;
      }
    }
    this.most = Math.max(this.most, this.bytes);
    return { length: i, events };
  }
}
