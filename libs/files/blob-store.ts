/**
 * Bytes under keys that the store itself makes. A blob is there completely or not at all, and never changes. Besides the
 * errors named, every operation throws BlobStoreAway when the storage fails (disk full, no answer): nothing was stored.
 */
export interface BlobStore {
  /** Keeps the bytes; they are durable when it answers. Throws BlobTooLarge past `maxBytes`, and what the source throws. */
  put(source: BlobSource, options?: { maxBytes?: number }): Promise<StoredBlob>;
  /** The bytes, of `range` only where one is given; the reader must be consumed or destroyed. Throws BlobMissing. */
  get(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>>;
  /** Removes the blob; one that is not there is no error. */
  delete(key: string): Promise<void>;
}

export type BlobSource = Uint8Array | AsyncIterable<Uint8Array>;

export interface StoredBlob {
  key: string;
  size: number;
  /** SHA-256 of the bytes, lower-case hexadecimal. */
  sha256: string;
}

/** Both ends inclusive, as in HTTP. */
export interface ByteRange {
  start: number;
  end: number;
}

export class BlobMissing extends Error {
  override name = 'BlobMissing';
}

export class BlobTooLarge extends Error {
  override name = 'BlobTooLarge';
}

export class BlobStoreAway extends Error {
  override name = 'BlobStoreAway';

  constructor(cause: unknown) {
    super('The blob store does not work.', { cause });
  }
}
