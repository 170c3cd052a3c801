import { Readable } from 'node:stream';
import { create as contentDisposition } from 'content-disposition';
import type { FastifyReply, FastifyRequest } from 'fastify';
import parseRange from 'range-parser';
import type { operations } from '#contract';
import { fileMetrics, BlobMissing, type BlobKeeper, type ByteRange, type FileRow, type FileStore } from '#files';
import type { ApiRequest } from '../http/caller.ts';
import { ApiError, contentLost, notFound } from '../http/http-errors.ts';
import type { AccessGuard } from '../access-guard.ts';
import { etagOf, isNotModified } from './preconditions.ts';

type Request = ApiRequest<typeof operations.readContent>;

/** Downloads of files that the caller may see. */
export class DownloadService {
  constructor(
    private readonly access: AccessGuard,
    private readonly sender: FileSender,
  ) {}

  async sendContent(request: Request, reply: FastifyReply): Promise<void> {
    const { file } = await this.access.findVisibleFile(request.caller, request.input.params.fileId);
    await this.sender.send(file, request, reply, { disposition: request.input.query.disposition });
  }
}

/** How a browser shows the file: by default, as an attachment of the type application/octet-stream. */
export interface Shown {
  disposition?: 'attachment' | 'inline';
  type?: string | undefined;
}

/** Sends the bytes of files to callers and operators (RFC 9110: ranges and conditional requests; RFC 6266: names). */
export class FileSender {
  constructor(
    private readonly files: FileStore,
    private readonly blobs: BlobKeeper,
    /** Cuts off a reader that takes no byte for this long, because it holds a file open. Milliseconds. */
    private readonly stalledMs: number,
  ) {}

  async send(
    file: FileRow,
    request: Pick<FastifyRequest, 'method' | 'headers'>,
    reply: FastifyReply,
    shown: Shown = {},
  ): Promise<void> {
    const { headers } = request;
    if (file.thread_id === null) throw notFound('File');
    const etag = etagOf(file);
    void reply.headers({
      ETag: etag,
      'Accept-Ranges': 'bytes',
      'Cache-Control': 'private, no-cache',
    });
    const isHead = request.method === 'HEAD';
    if (isNotModified(request, etag)) return void reply.code(304).send(isHead ? noBytes() : undefined);
    // Ranges are defined for GET only (RFC 9110, section 14.2).
    const range = isHead ? null : rangeOf(file, headers.range, headers['if-range'], etag);
    const { size } = file;
    // Opens before the headers are set, so that a refusal is not sent as the bytes of the file.
    const bytes = await this.open(file, range, isHead);
    // Starts again with the current tag and size.
    if (!(bytes instanceof Readable)) return this.send(bytes, request, reply, shown);
    void reply.headers({
      'Content-Type': shown.type ?? 'application/octet-stream',
      'X-Content-Type-Options': 'nosniff',
      'Content-Disposition': contentDisposition(file.name, { type: shown.disposition ?? 'attachment' }),
      'Content-Length': range === null ? size : range.end - range.start + 1,
    });
    if (range !== null) {
      void reply.code(206).header('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
    }
    reply.raw.setTimeout(this.stalledMs, () => reply.raw.destroy());
    await reply.send(bytes);
  }

  /**
   * Returns the bytes (none for HEAD, after a check that they exist). Returns the current file instead if an Agent has
   * replaced it and the old bytes are deleted. Throws ApiError 410 if the blob store has lost the bytes.
   */
  private async open(file: FileRow, range: ByteRange | null, isHead: boolean): Promise<Readable | FileRow> {
    try {
      const bytes = isHead ? await this.probe(file) : await this.blobs.get(file.blob_key, range ?? undefined);
      // If this fails, the next read or `spool verify --files` records it.
      if (file.lost_at !== null) await this.files.noteLost(file, false).catch(() => undefined);
      return bytes;
    } catch (error) {
      if (!(error instanceof BlobMissing)) throw error;
      const now = await this.files.find(file.id);
      // Another request has deleted the file.
      if (now === null) throw notFound('File');
      if (now.blob_key !== file.blob_key) return now;
      fileMetrics.lostFileReads.inc();
      await this.files.noteLost(file, true);
      throw contentLost();
    }
  }

  private async probe(file: FileRow): Promise<Readable> {
    await this.blobs.size(file.blob_key);
    return noBytes();
  }
}

/** An empty stream. For any other body, Fastify's route for HEAD would set the length. */
const noBytes = () => Readable.from([]);

/** Returns null for the whole file: for an invalid range, several ranges, or a range of other bytes. Throws ApiError 416. */
function rangeOf(
  { size }: FileRow,
  range: string | undefined,
  ifRange: string | string[] | undefined,
  etag: string,
): ByteRange | null {
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return null;
  // A suffix longer than the file means the whole file (RFC 9110, 14.1.2). The parser would refuse it.
  const clamped = range.replace(/^bytes=-(\d+)$/, (_, suffix: string) => `bytes=-${Math.min(Number(suffix), size)}`);
  const ranges = parseRange(size, clamped);
  if (ranges === -1) {
    const headers = { 'Content-Range': `bytes */${size}` };
    throw new ApiError('range_not_satisfiable', 'Range: is outside the file', { headers });
  }
  if (ranges === -2 || ranges.type !== 'bytes' || ranges.length !== 1) return null;
  return ranges[0] ?? null;
}
