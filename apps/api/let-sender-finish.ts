import type { IncomingMessage } from 'node:http';

/** Whoever sends nothing for so long has stopped. Milliseconds. */
const SILENCE_MS = 2_000;
/** As long as the slowest of those who are still sending may take. Milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Throws away what still comes of a request that is refused: until it has all come, its sender may not look at the answer, and
 * the connection can take no other request. Who is silent or too slow is hung up on.
 */
export function letSenderFinish(request: IncomingMessage): void {
  const hangUp = (): void => void request.socket.destroy();
  const silence = setTimeout(hangUp, SILENCE_MS).unref();
  const patience = setTimeout(hangUp, PATIENCE_MS).unref();
  const stop = (): void => {
    clearTimeout(silence);
    clearTimeout(patience);
  };
  request.on('data', () => silence.refresh());
  request.once('end', stop);
  request.once('close', stop);
  // Whoever was to read it has stopped.
  request.unpipe();
  request.resume();
}
