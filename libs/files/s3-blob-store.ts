import { PassThrough, pipeline, type Readable } from 'node:stream';
import { BlobMissing, BlobStoreUnavailable, isBlobKey } from './blob-store.ts';
import type { BlobSource, BlobStore, ByteRange, StoredBlob } from './blob-store.ts';
import { S3Bucket } from './s3-bucket.ts';
import { S3Upload } from './s3-upload.ts';
import { MeasuredSource } from './measured-source.ts';

/** Long enough to upload a part of 5 MiB at 8 Mbit/s. */
const ATTEMPT_MS = 5_000;

/**
 * Blobs as objects of a bucket, which all pods share. An object appears whole or not at all. The bucket must not keep old
 * versions, because a deleted blob would stay.
 */
export class S3BlobStore implements BlobStore {
  private readonly bucket: S3Bucket;

  /**
   * `s3://bucket/prefix?endpoint=http://…&region=…`. Credentials and an omitted region are found as in all AWS programs.
   * `attemptMs`: how long the storage may be silent. A call fails after 2.5 times this, a put after 3.5 times.
   */
  constructor(
    url: string,
    private readonly attemptMs = ATTEMPT_MS,
  ) {
    this.bucket = new S3Bucket(url, attemptMs);
  }

  async put(key: string, source: BlobSource, { maxBytes = Infinity }: { maxBytes?: number } = {}): Promise<StoredBlob> {
    const upload = new S3Upload(this.bucket, key, source instanceof Uint8Array ? source.byteLength : undefined);
    try {
      const measured = new MeasuredSource(source, maxBytes);
      for await (const chunk of measured.chunks()) await upload.write(chunk);
      await upload.finish();
      return measured.end();
    } catch (error) {
      await upload.undo(this.attemptMs).catch(() => undefined);
      throw error;
    }
  }

  async get(key: string, range?: ByteRange): Promise<Readable> {
    if (!isBlobKey(key)) throw new BlobMissing(`There is no blob ${key}.`);
    const bytes = await this.bucket.get(key, range && `bytes=${range.start}-${range.end}`);
    return guard(bytes, this.attemptMs);
  }

  async size(key: string): Promise<number> {
    if (!isBlobKey(key)) throw new BlobMissing(`There is no blob ${key}.`);
    return this.bucket.size(key);
  }

  async delete(key: string): Promise<void> {
    if (!isBlobKey(key)) return;
    for (const id of await this.bucket.findUploads(key)) await this.bucket.abortUpload(key, id);
    await this.bucket.delete(key);
  }
}

/**
 * Returns the same bytes, but fails with BlobStoreUnavailable if the storage breaks off or is silent for `silenceMs`. A timeout of
 * the socket is no alternative, because it also cuts off a slow reader.
 */
function guard(bytes: Readable, silenceMs: number): Readable {
  const reader = new PassThrough();
  const fail = (error: Error): void => void reader.destroy(new BlobStoreUnavailable(error));
  const silence = setTimeout(() => {
    if (bytes.readableEnded || reader.writableNeedDrain) silence.refresh();
    else fail(new Error(`The storage sent nothing for ${silenceMs} ms.`));
  }, silenceMs);
  bytes.once('error', fail); // Before the pipeline passes on the bare error.
  bytes.on('data', () => silence.refresh());
  reader.on('drain', () => silence.refresh());
  pipeline(bytes, reader, () => clearTimeout(silence));
  return reader;
}
