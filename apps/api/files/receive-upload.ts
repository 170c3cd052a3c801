import type { FastifyRequest } from 'fastify';
import { ApiError, fileTooLarge } from '../http-errors.ts';

/** What of a multipart body is not the file: boundaries and headers of its part, bytes. */
const AROUND_FILE_BYTES = 16 * 1024;

/** Room for one part more than is taken, so that it is us who refuse it. */
const LIMITS = { fileSize: Infinity, files: 2, fields: 1, parts: 3, fieldSize: 1_024, fieldNameSize: 100 };

/** The file of an upload, as it comes in. */
export interface Incoming {
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

/**
 * Gives `store` the one part named `file` of a multipart/form-data body, byte by byte as it arrives, and then sees that there
 * is nothing else in it; else what `store` made of it goes through `undo`. Throws ApiError, and what `store` throws.
 */
export async function receiveUpload<T>(
  request: FastifyRequest,
  maxBytes: number,
  store: (incoming: Incoming) => Promise<T>,
  undo: (stored: T) => Promise<void>,
): Promise<T> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > maxBytes + AROUND_FILE_BYTES) throw fileTooLarge(`A file can have at most ${maxBytes} bytes.`);
  const parts = request.parts({ limits: LIMITS });
  const next = () => parts.next().catch(refuseMalformed);
  const first = await next();
  if (first.done || first.value.type !== 'file' || first.value.fieldname !== 'file') throw wrongParts();
  const stored = await store({ name: first.value.filename, bytes: whole(first.value.file) });
  try {
    if (!(await next()).done) throw wrongParts();
  } catch (error) {
    await undo(stored);
    throw error;
  }
  return stored;
}

const wrongParts = () => new ApiError('invalid_upload', 'body: must have one part, a file named `file`');

/** The parser has no codes for what callers do wrong, and every failure of it is theirs. */
function refuseMalformed(): never {
  throw new ApiError('incomplete_upload', 'body: is not complete multipart/form-data');
}

/** What is cut off is refused, and never taken for the end. */
async function* whole(file: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = file[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await chunks.next().catch(refuseMalformed);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}
