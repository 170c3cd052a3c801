import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/** A sender that is silent for this long has stopped. Milliseconds. */
const SILENCE_MS = 2_000;
/** How long the slowest sender may take. Milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Discards the rest of a refused request. Closing the connection before all of it has arrived would reset it, and the sender would
 * lose the answer. Closes the connection of a sender that is silent or too slow.
 *
 * @param source the request, or its connection if the request cannot be parsed as HTTP
 */
export function letSenderFinish(source: Readable, connection: Socket): void {
  const hangUp = (): void => void connection.destroy();
  const silence = setTimeout(hangUp, SILENCE_MS).unref();
  const patience = setTimeout(hangUp, PATIENCE_MS).unref();
  const stop = (): void => {
    clearTimeout(silence);
    clearTimeout(patience);
  };
  source.on('data', () => silence.refresh());
  source.once('end', stop);
  source.once('close', stop);
  // The former reader has stopped.
  source.unpipe();
  source.resume();
}
