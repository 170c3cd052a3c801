import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3';
import { BlobMissing, BlobStoreUnavailable } from './blob-store.ts';

const ATTEMPTS = 3;

type Ask<T> = (client: S3Client, limit: { abortSignal: AbortSignal }) => Promise<T>;

/** The calls of S3 that blobs need. Each call throws BlobStoreUnavailable after at most 2.5 × `attemptMs`. */
export class S3Bucket {
  private readonly client: S3Client;
  private readonly name: string;
  private readonly prefix: string;

  /** `s3://bucket/prefix?endpoint=…&region=…`; `attemptMs` is how long the storage may take to answer one attempt. */
  constructor(
    url: string,
    private readonly attemptMs: number,
  ) {
    const { hostname, pathname, searchParams } = new URL(url);
    this.name = hostname;
    this.prefix = decodeURIComponent(pathname.replace(/^\/+/, '').replace(/(?<=[^/])\/*$/, '/'));
    this.client = makeClient(searchParams.get('endpoint'), searchParams.get('region'), attemptMs);
  }

  async put(key: string, Body: Uint8Array): Promise<void> {
    await this.call((client, limit) => client.send(new PutObjectCommand({ ...this.place(key), Body }), limit));
  }

  /** Throws BlobMissing. A failure after the answer fails the reader. */
  async get(key: string, range: string | undefined): Promise<Readable> {
    try {
      const input = { ...this.place(key), ...(range !== undefined && { Range: range }) };
      const { Body } = await this.call((client, limit) => client.send(new GetObjectCommand(input), limit));
      return Body as Readable;
    } catch (error) {
      if (error instanceof BlobStoreUnavailable && error.cause instanceof NoSuchKey) {
        throw new BlobMissing(`There is no blob ${key}.`);
      }
      throw error;
    }
  }

  /** Throws BlobMissing. */
  async size(key: string): Promise<number> {
    try {
      const { ContentLength } = await this.call((client, limit) =>
        client.send(new HeadObjectCommand(this.place(key)), limit),
      );
      return ContentLength!;
    } catch (error) {
      // The answer to HEAD has no body. Only the answer to GET shows whether the object or the bucket is missing.
      if (error instanceof BlobStoreUnavailable && error.cause instanceof NotFound)
        (await this.get(key, undefined)).destroy();
      throw error;
    }
  }

  async delete(key: string, limitMs?: number): Promise<void> {
    await this.call((client, limit) => client.send(new DeleteObjectCommand(this.place(key)), limit), limitMs);
  }

  async beginUpload(key: string): Promise<string> {
    const { UploadId } = await this.call((client, limit) =>
      client.send(new CreateMultipartUploadCommand(this.place(key)), limit),
    );
    return UploadId!;
  }

  async putPart(key: string, UploadId: string, PartNumber: number, Body: Uint8Array): Promise<CompletedPart> {
    const input = { ...this.place(key), UploadId, PartNumber, Body };
    const { ETag } = await this.call((client, limit) => client.send(new UploadPartCommand(input), limit));
    return { ETag, PartNumber };
  }

  async completeUpload(key: string, UploadId: string, Parts: CompletedPart[]): Promise<void> {
    const input = { ...this.place(key), UploadId, MultipartUpload: { Parts } };
    await this.call((client, limit) => client.send(new CompleteMultipartUploadCommand(input), limit));
  }

  /** Aborts an upload. One that is completed or aborted is no error. */
  async abortUpload(key: string, UploadId: string, limitMs?: number): Promise<void> {
    const input = { ...this.place(key), UploadId };
    try {
      await this.call((client, limit) => client.send(new AbortMultipartUploadCommand(input), limit), limitMs);
    } catch (error) {
      // By its name, because the SDK has no class for it in this call.
      const { cause } = error as BlobStoreUnavailable;
      if (!(cause instanceof S3ServiceException && cause.name === 'NoSuchUpload')) throw error;
    }
  }

  /** Returns the uploads of a key that are neither completed nor aborted. */
  async findUploads(key: string): Promise<string[]> {
    const { Bucket, Key } = this.place(key);
    // One page holds 1,000, and a key is put once.
    const { Uploads = [] } = await this.call((client, limit) =>
      client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), limit),
    );
    // Never abort the upload of another key, even if a storage ignores the prefix.
    return Uploads.flatMap((upload) => (upload.Key === Key && upload.UploadId ? [upload.UploadId] : []));
  }

  private place(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.name, Key: this.prefix + key };
  }

  /** Limits the time of all attempts together, until the storage answers. The read of the bytes has no such limit. */
  private async call<T>(ask: Ask<T>, limitMs = 2.5 * this.attemptMs): Promise<T> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), limitMs);
    try {
      return await ask(this.client, { abortSignal: limit.signal });
    } catch (error) {
      throw new BlobStoreUnavailable(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

function makeClient(endpoint: string | null, region: string | null, attemptMs: number): S3Client {
  return new S3Client({
    // Self-hosted servers have no DNS name for each bucket. They ignore the region, but it is part of the signature.
    ...(endpoint !== null && { endpoint, forcePathStyle: true, region: 'us-east-1' }),
    ...(region !== null && { region }),
    maxAttempts: ATTEMPTS,
    // Without the CRC that the SDK adds by default since 2025, in headers or trailers. Many servers reject it, or keep it as
    // part of the object (the server of the tests ignores it). The signature of a part already has its SHA-256.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // "Expect: 100-continue" would cost a round trip and, in this SDK, a new connection for each part.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: attemptMs / 2,
      requestTimeout: attemptMs,
      throwOnRequestTimeout: true,
      // No maximum, because 50 slow downloads must not block all other calls.
      httpAgent: { maxSockets: Infinity },
      httpsAgent: { maxSockets: Infinity },
    },
  });
}
