import type { CompletedPart } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';

/** The smallest part that S3 accepts, except for the last one. It allows 10,000 parts: 48 GiB. */
const PART_BYTES = 5 * 1024 * 1024;

/**
 * The upload of one blob: in one request if the bytes fit in a part, else in parts, one after the other. One buffer is all the
 * memory that it takes. (`Upload` of @aws-sdk/lib-storage holds at least two parts and copies each. It leaves the parts behind
 * if its source throws while none is being sent.)
 */
export class S3Upload {
  private readonly part: Buffer;
  private filled = 0;
  private id: string | null = null;
  private readonly parts: CompletedPart[] = [];
  private mayBeThere = false;

  /** `expectedBytes`: the most bytes that will be written, if known. */
  constructor(
    private readonly bucket: S3Bucket,
    private readonly key: string,
    expectedBytes = Infinity,
  ) {
    // Not from the pool and not zeroed: pages that a small blob does not touch cost nothing.
    this.part = Buffer.allocUnsafeSlow(Math.min(PART_BYTES, expectedBytes));
  }

  /** Copies the bytes, and sends each part that is full. */
  async write(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.byteLength > 0) {
      // Only when more bytes follow, because `finish` sends the last part, which may be the only one.
      if (this.filled === this.part.byteLength) await this.sendPart();
      const taken = rest.subarray(0, this.part.byteLength - this.filled);
      this.part.set(taken, this.filled);
      this.filled += taken.byteLength;
      rest = rest.subarray(taken.byteLength);
    }
  }

  /** Stores the blob durably before it returns. */
  async finish(): Promise<void> {
    if (this.id === null) {
      this.mayBeThere = true;
      return this.bucket.put(this.key, this.part.subarray(0, this.filled));
    }
    await this.sendPart();
    this.mayBeThere = true;
    await this.bucket.completeUpload(this.key, this.id, this.parts);
  }

  /** Removes the stored bytes, even after a lost answer. Tries once, because a deletion of the key removes the rest. */
  async undo(limitMs: number): Promise<void> {
    if (this.id !== null) await this.bucket.abortUpload(this.key, this.id, limitMs);
    if (this.mayBeThere) await this.bucket.delete(this.key, limitMs);
  }

  private async sendPart(): Promise<void> {
    this.id ??= await this.bucket.beginUpload(this.key);
    const bytes = this.part.subarray(0, this.filled);
    this.parts.push(await this.bucket.putPart(this.key, this.id, this.parts.length + 1, bytes));
    this.filled = 0;
  }
}
