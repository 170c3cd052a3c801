import type { Readable } from 'node:stream';
import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { watchArrival, type ArrivalLimits } from '../bodies/arrival.ts';
import { ApiError, fileTooLarge } from '../http/http-errors.ts';

/** Bytes of a multipart body around the file: boundaries and headers of its part. */
const AROUND_FILE_BYTES = 16 * 1024;

/** Allows one part more than is accepted, so that Spool refuses it and not the parser. */
const LIMITS = { fileSize: Infinity, files: 2, fields: 1, parts: 3, fieldSize: 1_024, fieldNameSize: 100 };

/**
 * Returns whether a part is a file. Clients omit `filename` if a file has no name. Then only the type distinguishes a file
 * from a form field, and a part without a type is `text/plain` (RFC 7578, section 4.4).
 */
const isPartAFile = (_field: string | undefined, type: string | undefined, name: string | undefined): boolean =>
  name !== undefined || type !== 'text/plain';

/** The file of an upload while it arrives. */
export interface Incoming {
  /** Empty if the part has none. */
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

type Rate = Omit<ArrivalLimits, 'timeoutMs'>;

/** The largest file, and how fast it must arrive. */
export interface UploadLimits {
  maxBytes: number;
  rate: Rate;
}

/** One file in a multipart/form-data body: `begin`, read the bytes, `end`. All throw ApiError. */
export class Upload {
  /** The minimum size of the file according to the headers. Bytes. */
  readonly minBytes: number;
  private next: () => Promise<IteratorResult<MultipartFile | MultipartValue>> = () => Promise.reject(wrongParts());

  constructor(
    private readonly request: FastifyRequest,
    private readonly limits: UploadLimits,
  ) {
    const { maxBytes } = limits;
    this.minBytes = Math.max(0, Number(request.headers['content-length'] ?? 0) - AROUND_FILE_BYTES);
    if (this.minBytes > maxBytes) throw fileTooLarge(`A file can have at most ${maxBytes} bytes.`);
  }

  /** Reads the body up to the part named `file`. Its bytes are read as they arrive. */
  async begin(): Promise<Incoming> {
    const parts = this.request.parts({ limits: LIMITS, isPartAFile });
    const arriving = untilTooSlow(this.request, this.limits.rate);
    this.next = () => arriving(parts.next().catch(refuseMalformed));
    const first = await this.next();
    if (first.done || first.value.type !== 'file' || first.value.fieldname !== 'file') throw wrongParts();
    return { name: nameOf(first.value), bytes: whole(first.value.file, arriving) };
  }

  /** Reads the rest of the body. It must have no other part. */
  async end(): Promise<void> {
    if (!(await this.next()).done) throw wrongParts();
  }
}

/** Returns the name of the file, or an empty one. The type of the parser wrongly declares that there is always a name. */
const nameOf = (part: { filename: string | undefined }): string => part.filename ?? '';

const wrongParts = () => new ApiError('invalid_upload', 'body: must have exactly one part, a file named `file`');

/** Waits for the next bytes. Rejects with ApiError once the request arrives too slowly. */
type Arriving = <T>(next: Promise<T>) => Promise<T>;

function untilTooSlow({ raw }: FastifyRequest, rate: Rate): Arriving {
  let tooSlow: ApiError | null = null;
  let refuse: (error: ApiError) => void = () => undefined;
  watchArrival(raw, { ...rate, timeoutMs: null }, (error) => {
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

/** Throws the refusal of a malformed body. The parser has no error codes, and the caller causes each of its errors. */
function refuseMalformed(): never {
  throw new ApiError('incomplete_upload', 'body: must be complete multipart/form-data');
}

/** Yields the file. Throws if the body ends early, so that a part of a file is never stored as a whole one. */
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
