/** Nothing came for as long as the manifest allows. */
export class ProviderSilent extends Error {
  override name = 'ProviderSilent';

  constructor(silenceMs: number) {
    super(`The provider sent nothing for ${silenceMs} ms.`);
  }
}

/** The stream ended before the answer did. */
export class StreamCut extends Error {
  override name = 'StreamCut';
}

export interface WatchedOptions<Part> {
  /** Has to let go of everything when its signal aborts. */
  open: (signal: AbortSignal) => PromiseLike<ReadableStream<Part>>;
  signal: AbortSignal;
  /** So long nothing may come, before the first part and between two. */
  silenceMs: number;
}

/**
 * The stream's parts. Throws the signal's reason as soon as it aborts, ProviderSilent, and what the stream throws. The
 * connection is closed with the generator, however that ends.
 */
export async function* watchedStream<Part>({ open, signal, silenceMs }: WatchedOptions<Part>): AsyncGenerator<Part> {
  const call = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    call.signal.addEventListener('abort', () => reject(call.signal.reason as Error), { once: true });
  });
  stopped.catch(() => undefined);
  const onAbort = (): void => call.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener('abort', onAbort, { once: true });
  const orSilence = async <Value>(waited: Promise<Value>): Promise<Value> => {
    const timer = setTimeout(() => call.abort(new ProviderSilent(silenceMs)), silenceMs);
    try {
      return await waited;
    } finally {
      clearTimeout(timer);
    }
  };
  let reader: ReadableStreamDefaultReader<Part> | undefined;
  try {
    // Raced, because a fetch may be slow to hear of the abort.
    const stream = await orSilence(Promise.race([open(call.signal), stopped]));
    reader = stream.getReader();
    const reading = reader;
    // A read that is under way ends by that; racing each of them would keep them all.
    call.signal.addEventListener('abort', () => void reading.cancel().catch(() => undefined), { once: true });
    for (;;) {
      const next = await orSilence(reader.read());
      call.signal.throwIfAborted();
      if (next.done) return;
      yield next.value;
      call.signal.throwIfAborted();
    }
  } catch (error) {
    // Whatever a fetch makes of the abort.
    call.signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    call.abort(new Error('The step has ended.'));
  }
}
