import type { CompletedPart } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';

/** The least that S3 takes as a part that is not the last. It allows 10,000 of them: 48 GiB. */
const PART_BYTES = 5 * 1024 * 1024;

/**
 * The bytes of one blob on their way: in one request if they fit in a part, else in parts, one after the other through one
 * buffer, which is all the memory it takes. (`Upload` of @aws-sdk/lib-storage holds at least two parts and copies each, and
 * leaves the parts where its source throws while none is being sent.)
 */
export class S3Upload {
  private readonly part: Buffer;
  private filled = 0;
  private id: string | null = null;
  private readonly parts: CompletedPart[] = [];
  private mayBeThere = false;

  /** `expectedBytes`: the most that will be written, where that is known. */
  constructor(
    private readonly bucket: S3Bucket,
    private readonly key: string,
    expectedBytes = Infinity,
  ) {
    // Not from the pool and not zeroed: pages that a small blob does not touch cost nothing.
    this.part = Buffer.allocUnsafeSlow(Math.min(PART_BYTES, expectedBytes));
  }

  /** Takes a copy of the bytes. */
  async write(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.byteLength > 0) {
      // Not as soon as it is full: the last part, which may be the only one, is for `finish`.
      if (this.filled === this.part.byteLength) await this.sendPart();
      const taken = rest.subarray(0, this.part.byteLength - this.filled);
      this.part.set(taken, this.filled);
      this.filled += taken.byteLength;
      rest = rest.subarray(taken.byteLength);
    }
  }

  /** The blob is there, durably, when this answers. */
  async finish(): Promise<void> {
    if (this.id === null) {
      this.mayBeThere = true;
      return this.bucket.put(this.key, this.part.subarray(0, this.filled));
    }
    await this.sendPart();
    this.mayBeThere = true;
    await this.bucket.completeUpload(this.key, this.id, this.parts);
  }

  /** Removes what this has stored, even if the answer was lost. In one try: who deletes the key removes what stays. */
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
