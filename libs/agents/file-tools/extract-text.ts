import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Turns } from '#platform';

export type DocumentKind = 'pdf' | 'docx';

/** The text, `cut` where there is more than is taken; or why there is none, a sentence. */
export type Extracted = { text: string; cut: boolean } | { refused: string };

const WORKER = join(import.meta.dirname, 'extract-text-worker.mjs');
const TIME_LIMIT_MS = 30_000;
/** Of JavaScript, in mebibytes. Buffers are not counted in it: those are watched from outside. */
const HEAP = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };
const MAX_GROWTH_BYTES = 512 * 1024 * 1024;
const WATCH_MS = 50;

/** One document of a process at a time: what one takes is a guess, and the guesses must not add up. */
const turns = new Turns(1);

/**
 * The text of a document, read in a thread that neither holds up the process nor can take its memory: past either limit
 * it is ended. `readAll` gives bytes that are nobody else's. Throws what that throws, and the signal's reason.
 */
export function extractText(
  kind: DocumentKind,
  readAll: () => Promise<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): Promise<Extracted> {
  return turns.take(async () => {
    signal.throwIfAborted();
    const bytes = await readAll();
    signal.throwIfAborted();
    return extractNow(kind, bytes, signal);
  });
}

async function extractNow(kind: DocumentKind, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<Extracted> {
  const before = process.memoryUsage.rss();
  const worker = new Worker(WORKER, {
    workerData: { kind, bytes },
    transferList: [bytes.buffer],
    resourceLimits: HEAP,
    // Nothing of the process's settings and secrets, and nothing of what it says.
    ...{ env: {}, execArgv: [], stdout: true, stderr: true },
  });
  const timers: NodeJS.Timeout[] = [];
  try {
    return await new Promise<Extracted>((resolve, reject) => {
      const refuse = (refused: string) => () => resolve({ refused });
      worker.once('message', resolve);
      worker.once('error', refuse('Reading it takes too much memory.'));
      worker.once('exit', refuse('Reading it has failed.'));
      timers.push(setTimeout(refuse('Reading it takes too long.'), TIME_LIMIT_MS));
      const watch = (): void => {
        if (process.memoryUsage.rss() - before > MAX_GROWTH_BYTES) refuse('Reading it takes too much memory.')();
      };
      timers.push(setInterval(watch, WATCH_MS));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  } finally {
    timers.forEach((timer) => clearTimeout(timer));
    await worker.terminate();
  }
}
