import { createHash } from 'node:crypto';
import { BlobTooLarge, type BlobSource, type StoredBlob } from './blob-store.ts';

/** Takes, counts and hashes in one pass, so that a source is never whole in memory. Throws BlobTooLarge, and what `take` throws. */
export async function takeSource(
  source: BlobSource,
  maxBytes: number,
  take: (chunk: Uint8Array) => Promise<void>,
): Promise<StoredBlob> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of source instanceof Uint8Array ? [source] : source) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new BlobTooLarge(`The file has more than ${maxBytes} bytes.`);
    hash.update(chunk);
    await take(chunk);
  }
  return { size, sha256: hash.digest('hex') };
}
