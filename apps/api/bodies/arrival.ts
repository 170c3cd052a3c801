import type { IncomingMessage } from 'node:http';
import { ApiError } from '../http/http-errors.ts';

/** How fast a body must arrive. */
export interface ArrivalLimits {
  /** The minimum rate. */
  bytesPerSecond: number;
  /** The time over which the rate is measured, milliseconds. */
  windowMs: number;
  /** The time for the whole body, milliseconds. Null means that only Node's own request timeout applies. */
  timeoutMs: number | null;
}

/**
 * Watches the body of a request while other code reads it. Calls `onSlow` once if it arrives too slowly. Does not count the time
 * in which received bytes wait to be read. Returns a function that ends the watch. The end of the request ends it too.
 */
export function watchArrival(
  request: IncomingMessage,
  { bytesPerSecond, windowMs, timeoutMs }: ArrivalLimits,
  onSlow: (error: ApiError) => void,
): () => void {
  const { socket } = request;
  let before = socket.bytesRead;
  const slow = (message: string): void => {
    stop();
    onSlow(new ApiError('request_timeout', message));
  };
  const check = (): void => {
    const arrived = socket.bytesRead - before;
    before = socket.bytesRead;
    const isOurs = request.readableLength > 0 || request.isPaused();
    if (request.complete || isOurs || arrived >= (bytesPerSecond * windowMs) / 1_000) return;
    slow(`The body arrives too slowly; send at least ${bytesPerSecond} bytes per second.`);
  };
  // After a stall of this process, Node reads the bytes that arrived meanwhile before the check phase.
  const pace = setInterval(() => setImmediate(() => setImmediate(check)), windowMs).unref();
  const whole =
    timeoutMs === null
      ? undefined
      : setTimeout(
          () => slow(`The body did not arrive in time; send it within ${timeoutMs / 1_000} s.`),
          timeoutMs,
        ).unref();
  const stop = (): void => {
    clearInterval(pace);
    clearTimeout(whole);
    request.off('end', stop).off('close', stop);
  };
  request.once('end', stop).once('close', stop);
  return stop;
}
