import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/** A sender that is silent for this long has stopped. Milliseconds. */
const SILENCE_MS = 2_000;
/** How long the slowest sender may take. Milliseconds. */
const PATIENCE_MS = 60_000;
/** The process discards one chunk in this time, for any number of senders. Chunks of 64 KiB make 32 MiB per second. */
const PIECE_MS = 2;

/** The callbacks that read the next chunks, in order, by owner. The first owner is next. */
const waiting = new Map<string, (() => void)[]>();
let timer: NodeJS.Timeout | null = null;

/**
 * Discards the rest of a refused request. Closing the connection before all of it has arrived would reset it, and the
 * sender would lose the answer. Closes the connection of a sender that is silent or too slow. Reads slowly and serves the
 * owners in turn, so that discarding gigabytes does not take the processor from other requests.
 *
 * @param source the request, or its connection if the request cannot be parsed as HTTP
 * @param owner the key that the request counts for
 */
export function drainRequest(source: Readable, connection: Socket, owner: string): void {
  const hangUp = (): void => void connection.destroy();
  let hangUpCheck: NodeJS.Immediate | undefined;
  // After a stall of the process, timers run before pending reads. So this waits for one read first.
  const hangUpUnlessRead = (): void => void (hangUpCheck = setImmediate(hangUp));
  const waitForChunk = (): NodeJS.Timeout => setTimeout(hangUpUnlessRead, SILENCE_MS).unref();
  let silence = waitForChunk();
  const stopWaiting = (): void => {
    clearTimeout(silence);
    clearImmediate(hangUpCheck);
  };
  const patience = setTimeout(hangUp, PATIENCE_MS).unref();
  let hasStopped = false;
  const stop = (): void => {
    hasStopped = true;
    stopWaiting();
    clearTimeout(patience);
  };
  const readNext = (): void => {
    if (hasStopped) return;
    silence = waitForChunk();
    source.resume();
  };
  source.on('data', () => {
    stopWaiting();
    source.pause();
    callInTurn(owner, readNext);
  });
  source.once('end', stop);
  source.once('close', stop);
  // The former reader has stopped.
  source.unpipe();
  source.resume();
}

function callInTurn(owner: string, readNext: () => void): void {
  waiting.set(owner, [...(waiting.get(owner) ?? []), readNext]);
  timer ??= setTimeout(callNext, PIECE_MS).unref();
}

function callNext(): void {
  const [[owner, [first, ...others]] = ['', []]] = waiting;
  waiting.delete(owner);
  // Moves the owner behind the others.
  if (others.length > 0) waiting.set(owner, others);
  timer = waiting.size > 0 ? setTimeout(callNext, PIECE_MS).unref() : null;
  first?.();
}
