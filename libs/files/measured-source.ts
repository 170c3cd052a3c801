import { createHash } from 'node:crypto';
import { BlobTooLarge, type BlobSource, type StoredBlob } from './blob-store.ts';

/** Counts and hashes a source while its chunks are read, so that it is never whole in memory. */
export class MeasuredSource {
  private readonly hash = createHash('sha256');
  private size = 0;

  constructor(
    private readonly source: BlobSource,
    private readonly maxBytes: number,
  ) {}

  /** Throws BlobTooLarge, and what the source throws. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const { source, maxBytes } = this;
    for await (const chunk of source instanceof Uint8Array ? [source] : source) {
      this.size += chunk.byteLength;
      if (this.size > maxBytes) throw new BlobTooLarge(`The file has more than ${maxBytes} bytes.`);
      this.hash.update(chunk);
      yield chunk;
    }
  }

  /** Returns the size and hash after the last chunk. */
  end(): StoredBlob {
    return { size: this.size, sha256: this.hash.digest('hex') };
  }
}
