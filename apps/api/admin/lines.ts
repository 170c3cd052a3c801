import { Readable } from 'node:stream';
import { isLargeJson, largeJson } from '#platform';

/** How long the start of the answer waits for the first line or a refusal, milliseconds. */
const FIRST_WITHIN_MS = 1_000;
/** The silence after which an empty line is sent, so that proxies keep the connection open. Milliseconds. */
const KEEPALIVE_MS = 15_000;

const LINE_END = Buffer.from('\n');

export interface LinesOptions {
  /** Aborts with the error of the last line, or without a reason if the reader has disconnected. */
  signal: AbortSignal;
  /** Returns the line for an error after the answer has begun. */
  errorLine: (error: unknown) => object;
}

/** Streams the items as NDJSON. Rejects with an error before the first item, so that it can be sent as an error response. */
export async function streamLines(items: AsyncIterable<object>, options: LinesOptions): Promise<Readable> {
  const iterator = items[Symbol.asyncIterator]();
  const first = iterator.next();
  const isLate = (await within(first, FIRST_WITHIN_MS)) === null;
  const lines = Readable.from(encode(iterator, first, isLate, options));
  // Needed if the reader disconnects before the first line is requested, because an unstarted generator runs no `finally`.
  lines.once('close', () => void iterator.return?.().catch(() => undefined));
  return lines;
}

type Next = Promise<IteratorResult<object, unknown>>;

async function* encode(
  iterator: AsyncIterator<object>,
  first: Next,
  isLate: boolean,
  { signal, errorLine }: LinesOptions,
): AsyncGenerator<string | Buffer> {
  // Node sends the headers with the first byte.
  if (isLate) yield '\n';
  try {
    for (let next = first; ; next = iterator.next()) {
      while ((await within(next, KEEPALIVE_MS)) === null) yield '\n';
      const { done, value } = await next;
      // Part of an answer must not look like the whole.
      signal.throwIfAborted();
      if (done) return;
      yield isLargeJson(value) ? Buffer.concat([await largeJson(value), LINE_END]) : `${JSON.stringify(value)}\n`;
    }
  } catch (error) {
    if (error === signal.reason && error instanceof DOMException) return; // the reader has disconnected
    yield `${JSON.stringify(errorLine(error))}\n`;
  }
}

/** Returns null after the time. Rejects as the promise does. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
