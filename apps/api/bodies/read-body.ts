import type { IncomingMessage } from 'node:http';
import { errorCodes } from 'fastify';
import { BOUNDS } from '#domain';
import { ownTurn, type ByteHold } from '#platform';
import { ApiError, bodiesFull } from '../http/http-errors.ts';
import { watchArrival, type ArrivalLimits } from './arrival.ts';
import { JsonShape } from './json-shape.ts';

/** The first buffer of a body of unknown length, bytes. */
const FIRST_BYTES = 64 * 1024;

/** The size from which the shape is checked on arrival, bytes. Parsing a smaller body is faster than checking it. */
const CHECKED_BYTES = BOUNDS.requests.unchecked.value;

export const bodyCutOff = () => new ApiError('invalid_http', 'The body is incomplete.');

export interface ReadOptions {
  /** The largest body, bytes. */
  limit: number;
  hold: ByteHold;
  arrival: ArrivalLimits;
}

/**
 * Reads a JSON body into one buffer. The hold covers the buffer before it is allocated. Throws ApiError if the body is too
 * large, too slow or cut off, if no operation accepts its shape, or if there is no room for it.
 */
export function readBody(
  request: IncomingMessage,
  { limit, hold, arrival }: ReadOptions,
): Promise<Buffer<ArrayBuffer>> {
  const expected = Number(request.headers['content-length'] ?? NaN);
  return new Promise((resolve, reject) => {
    const shape = new JsonShape();
    let buffer: Buffer<ArrayBuffer> = Buffer.alloc(0);
    let filled = 0;
    let checked = 0;
    const stop = watchArrival(request, arrival, (error) => fail(error));
    const end = (): void => {
      stop();
      request.off('data', take).off('end', finish).off('error', cutOff).off('close', cutOff);
      // The connection is not read any more, but an unhandled error would end the process.
      request.on('error', () => undefined);
      // Frees the bytes now. The error, which refers to this closure, lives until it is sent.
      buffer = Buffer.alloc(0);
    };
    const fail = (error: Error): void => {
      end();
      hold.release();
      reject(error);
    };
    const cutOff = (): void => fail(bodyCutOff());
    const finish = (): void => {
      const body = buffer.subarray(0, filled);
      end();
      resolve(body);
    };
    const makeRoom = (bytes: number): ApiError | Error | null => {
      if (bytes > limit) return new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
      if (bytes <= buffer.length) return null;
      const capacity = expected >= bytes ? expected : Math.min(limit, Math.max(FIRST_BYTES, 2 * buffer.length, bytes));
      if (!hold.growTo(capacity)) return bodiesFull();
      const larger = Buffer.allocUnsafeSlow(capacity);
      buffer.copy(larger, 0, 0, filled);
      buffer = larger;
      return null;
    };
    const take = (chunk: Buffer): void => {
      const problem = makeRoom(filled + chunk.length);
      if (problem !== null) return fail(problem);
      filled += chunk.copy(buffer, filled);
      if (filled <= CHECKED_BYTES) return;
      const wrong = shape.add(buffer.subarray(checked, filled));
      checked = filled;
      if (wrong !== null) return fail(new ApiError('invalid_field', wrong));
      // Many large bodies that arrive together must not add up to one long turn.
      request.pause();
      void ownTurn().then(() => request.resume());
    };
    if (expected > limit) return fail(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    // Refuses a body that has no room before its first byte.
    if (expected > 0 && !hold.growTo(expected)) return fail(bodiesFull());
    request.on('data', take).once('end', finish).once('error', cutOff).once('close', cutOff);
  });
}
