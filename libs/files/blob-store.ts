import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';

/**
 * Bytes under keys of `newBlobKey`. A blob exists completely or not at all, and never changes. All operations also throw
 * BlobStoreUnavailable if the storage fails (disk full, no response). Then nothing was stored. BlobMissing means that the storage
 * answered and does not have the blob.
 */
export interface BlobStore {
  /** Stores the bytes durably before it returns. Throws BlobTooLarge above `maxBytes`, and what the source throws. */
  put(key: string, source: BlobSource, options?: { maxBytes?: number }): Promise<StoredBlob>;
  /** Returns the bytes, or only `range` of them. The reader must be consumed or destroyed. Throws BlobMissing. */
  get(key: string, range?: ByteRange): Promise<Readable>;
  /** Returns the size in bytes without reading them. Throws BlobMissing. */
  size(key: string): Promise<number>;
  /** Deletes the blob, and what an interrupted put of it has left. A missing blob is no error. */
  delete(key: string): Promise<void>;
}

export type BlobSource = Uint8Array | AsyncIterable<Uint8Array>;

export interface StoredBlob {
  size: number;
  /** SHA-256 of the bytes, lower-case hexadecimal. */
  sha256: string;
}

/** Both ends inclusive, as in HTTP. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The form of all keys. Other text names no blob. */
const BLOB_KEY = /^[0-9a-f]{2}\/[0-9a-f]{30}$/;

/** Returns a new random key. Keys are spread over 256 folders. */
export function newBlobKey(): string {
  const name = randomUUID().replaceAll('-', '');
  return `${name.slice(0, 2)}/${name.slice(2)}`;
}

export function isBlobKey(key: string): boolean {
  return BLOB_KEY.test(key);
}

export class BlobMissing extends Error {
  override name = 'BlobMissing';
}

export class BlobTooLarge extends Error {
  override name = 'BlobTooLarge';
}

export class BlobStoreUnavailable extends Error {
  override name = 'BlobStoreUnavailable';

  constructor(cause: unknown) {
    super('The blob store is unavailable. Check BLOB_URL, the network, and whether its volume is mounted.', { cause });
  }
}
