/** An answer, or one event of a stream, is larger than it may be. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

export interface BodyLimit {
  /** Of the whole body; of a stream of server-sent events since the last one ended, so that it may be endless. */
  maxBytes: number;
  /** The body has ended, or broke with an error; not called when the reader let go of it. */
  onEnd?: (error?: unknown) => void;
}

/**
 * The same answer, whose body fails with BodyTooLarge instead of passing on more than it may. Events are passed on whole:
 * readers of them look at all that they have of one at each piece.
 */
export function limitBody(response: Response, { maxBytes, onEnd = () => undefined }: BodyLimit): Response {
  if (response.body === null) return response;
  const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
  const counter = isStream ? new EventCounter() : new ByteCounter();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let held: Uint8Array[] = [];
  /** What may be passed on next; null at the end. */
  const next = async (): Promise<Uint8Array | null> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done && held.length === 0) return null;
      if (!done) {
        held.push(value);
        const mayPass = counter.take(value);
        if (counter.most > maxBytes) throw new BodyTooLarge(`The answer is larger than ${maxBytes} bytes.`);
        if (!mayPass) continue;
      }
      const [first, ...others] = held;
      held = [];
      return first !== undefined && others.length === 0 ? first : Buffer.concat(first ? [first, ...others] : []);
    }
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const piece = await next();
        if (piece !== null) return controller.enqueue(piece);
        controller.close();
        onEnd();
      } catch (error) {
        held = [];
        reader.cancel(error).catch(() => undefined);
        controller.error(error);
        onEnd(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers: new Headers([...headers]) });
}

/** `most`: bytes that count against the limit. `take` says whether what came so far may be passed on. */
class ByteCounter {
  most = 0;

  take({ length }: Uint8Array): boolean {
    this.most += length;
    return true;
  }
}

const LF = 10;
const CR = 13;

/** An event ends with an empty line; lines end with LF, CR or both. */
class EventCounter {
  most = 0;
  private bytes = 0;
  private lineIsEmpty = true;
  private last = 0;

  take(piece: Uint8Array): boolean {
    let ended = false;
    for (let i = 0; i < piece.length; i++) {
      const byte = piece[i] ?? 0;
      this.bytes++;
      const isSecondHalf = byte === LF && this.last === CR;
      this.last = byte;
      if (byte !== LF && byte !== CR) this.lineIsEmpty = false;
      else if (!isSecondHalf) {
        if (this.lineIsEmpty) {
          ended = true;
          this.most = Math.max(this.most, this.bytes);
          this.bytes = 0;
        }
        this.lineIsEmpty = true;
      }
    }
    this.most = Math.max(this.most, this.bytes);
    return ended;
  }
}
