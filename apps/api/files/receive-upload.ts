import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { watchArrival } from '../bodies/arrival.ts';
import { ApiError, fileTooLarge } from '../http-errors.ts';

/** Bytes of a multipart body around the file: boundaries and headers of its part. */
const AROUND_FILE_BYTES = 16 * 1024;

/** One part more than is accepted, so that Spool and not the parser refuses it. */
const LIMITS = { fileSize: Infinity, files: 2, fields: 1, parts: 3, fieldSize: 1_024, fieldNameSize: 100 };

/**
 * Clients leave out the name of a file that has none. Such a part differs from a field of a form only by its type, and a part
 * without a type is `text/plain` (RFC 7578, section 4.4).
 */
const isPartAFile = (_field: string | undefined, type: string | undefined, name: string | undefined): boolean =>
  name !== undefined || type !== 'text/plain';

/** The file of an upload, as it comes in. */
export interface Incoming {
  /** Empty if the part has none. */
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

/** The largest file, and how fast it must arrive. */
export interface UploadLimits {
  maxBytes: number;
  bytesPerSecond: number;
}

/** The steps of an upload. Each may throw ApiError. */
export interface UploadSteps<T> {
  /** Comes before the body is read. The file has at least `minBytes`, as far as the headers tell. */
  admit: (minBytes: number) => Promise<void>;
  store: (incoming: Incoming) => Promise<T>;
  /** Removes what was stored if the rest of the body is refused. */
  undo: (stored: T) => Promise<void>;
}

/**
 * Gives `store` the one part named `file` of a multipart/form-data body, byte by byte as it arrives. Refuses a body with
 * other parts. Throws ApiError, and what the steps throw.
 */
export async function receiveUpload<T>(
  request: FastifyRequest,
  { maxBytes, bytesPerSecond }: UploadLimits,
  { admit, store, undo }: UploadSteps<T>,
): Promise<T> {
  const minBytes = Math.max(0, Number(request.headers['content-length'] ?? 0) - AROUND_FILE_BYTES);
  if (minBytes > maxBytes) throw fileTooLarge(`A file can have at most ${maxBytes} bytes.`);
  await admit(minBytes);
  const parts = request.parts({ limits: LIMITS, isPartAFile });
  const arriving = untilTooSlow(request, bytesPerSecond);
  const next = () => arriving(parts.next().catch(refuseMalformed));
  const first = await next();
  if (first.done || first.value.type !== 'file' || first.value.fieldname !== 'file') throw wrongParts();
  const stored = await store({ name: nameOf(first.value), bytes: whole(first.value.file, arriving) });
  try {
    if (!(await next()).done) throw wrongParts();
  } catch (error) {
    await undo(stored);
    throw error;
  }
  return stored;
}

/** The type of the parser says that there is a name. */
const nameOf = (part: { filename: string | undefined }): string => part.filename ?? '';

const wrongParts = () => new ApiError('invalid_upload', 'body: must have one part, a file named `file`');

/** Waits for the next bytes. Rejects with ApiError once the request arrives too slowly. */
type Arriving = <T>(next: Promise<T>) => Promise<T>;

function untilTooSlow({ raw }: FastifyRequest, bytesPerSecond: number): Arriving {
  let tooSlow: ApiError | null = null;
  let refuse: (error: ApiError) => void = () => undefined;
  watchArrival(raw, { bytesPerSecond, timeoutMs: null }, (error) => {
    tooSlow = error;
    refuse(error);
  });
  return (next) =>
    new Promise((resolve, reject) => {
      refuse = reject;
      if (tooSlow !== null) reject(tooSlow);
      next.then(resolve, reject);
    });
}

/** The parser has no codes for what callers do wrong, and every failure of it is theirs. */
function refuseMalformed(): never {
  throw new ApiError('incomplete_upload', 'body: is not complete multipart/form-data');
}

/** What is cut off is refused, and never taken for the end. */
async function* whole(file: Readable, arriving: Arriving): AsyncGenerator<Uint8Array> {
  const chunks = file[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  try {
    for (;;) {
      const next = await arriving(chunks.next().catch(refuseMalformed));
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Ending the iterator would wait for bytes that may never come.
    file.destroy();
  }
}
