import { Readable } from 'node:stream';
import { isLargeJson, largeJson } from '#platform';

/** For so long it is waited for a first line, or a refusal, before the answer begins. Milliseconds. */
const FIRST_WITHIN_MS = 1_000;
/** An empty line after so much silence: else what stands between would hang up. Milliseconds. */
const KEEPALIVE_MS = 15_000;

const LINE_END = Buffer.from('\n');

export interface LinesOptions {
  /** Aborted with what the last line is to say: the token was revoked, or the process stops. Without a reason: the reader has gone. */
  signal: AbortSignal;
  /** The line that says what has failed after the answer has begun. */
  lastWords: (error: unknown) => object;
}

/** The items as NDJSON. Rejects with what is thrown before the first of them, so that it can be answered as an error. */
export async function linesAsTheyCome(items: AsyncIterable<object>, options: LinesOptions): Promise<Readable> {
  const iterator = items[Symbol.asyncIterator]();
  const first = iterator.next();
  const isLate = (await within(first, FIRST_WITHIN_MS)) === null;
  const lines = Readable.from(encode(iterator, first, isLate, options));
  // Also where the reader has gone before the first line was asked for: what has not begun has no `finally`.
  lines.once('close', () => void iterator.return?.().catch(() => undefined));
  return lines;
}

type Next = Promise<IteratorResult<object, unknown>>;

async function* encode(
  iterator: AsyncIterator<object>,
  first: Next,
  isLate: boolean,
  { signal, lastWords }: LinesOptions,
): AsyncGenerator<string | Buffer> {
  // The head of an answer goes out with its first byte.
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
    if (error === signal.reason && error instanceof DOMException) return; // nobody is left to be told
    yield `${JSON.stringify(lastWords(error))}\n`;
  }
}

/** Null after the time; rejects as the promise does. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
