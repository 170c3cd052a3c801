import type { FastifyRequest } from 'fastify';
import { uploaderFor } from '#access';
import {
  operations,
  type AttachFileBody,
  type ListFilesAnswer,
  type OkAnswer,
  type PublicFileAnswer,
  type ThreadFileAnswer,
} from '#contract';
import { BOUNDS } from '#domain';
import {
  BlobTooLarge,
  storeAttachment,
  type BlobKeeper,
  type FileRow,
  type FileSource,
  type FileStore,
  type NewDraft,
  type PreparedFile,
} from '#files';
import { ownTurn, type Config } from '#platform';
import { ThreadRefused, type Threads } from '#threads';
import type { ApiRequest } from '../http/caller.ts';
import {
  type ApiError,
  busyNow,
  fileQuotaFull,
  fileTooLarge,
  isRefusal,
  keyInProgress,
  notFound,
  rateLimited,
} from '../http/http-errors.ts';
import { requestKey, type Answer, type Idempotency, type RequestKey } from '../idempotency.ts';
import { renderExtendedFile, renderPublicFile, renderThreadFile } from '../render.ts';
import type { AccessGuard } from '../access-guard.ts';
import { etagOf, isConditional, isNotModified } from './preconditions.ts';
import { Upload } from './receive-upload.ts';

export interface FileServiceOptions {
  access: AccessGuard;
  threads: Threads;
  files: FileStore;
  blobs: BlobKeeper;
  idempotency: Idempotency;
  settings: Pick<
    Config,
    | 'FILE_LIMIT_BYTES'
    | 'INLINE_FILE_LIMIT_BYTES'
    | 'DRAFTS_PER_TOKEN'
    | 'DRAFTS_PER_BROWSER_USER'
    | 'BODY_BYTES_PER_SECOND'
    | 'BODY_RATE_WINDOW_MS'
  >;
}

type UploadedDraft = Pick<NewDraft, 'file' | 'owner' | 'organizationId'>;

/** The operations on drafts of Agents, and on attachments and artifacts of Threads. download.ts sends the bytes. */
export class FileService {
  constructor(private readonly options: FileServiceOptions) {}

  /** Stores the bytes as they arrive. Only the commit of the draft takes the lock of the idempotency key. */
  async uploadFile(request: ApiRequest<typeof operations.uploadFile>): Promise<Answer> {
    const { access, blobs, settings } = this.options;
    const { caller, input } = request;
    const { id: agentId, organizationId } = await access.findUsableAgent(caller, input.params.agentId);
    const maxBytes = settings.FILE_LIMIT_BYTES;
    const { BODY_BYTES_PER_SECOND: bytesPerSecond, BODY_RATE_WINDOW_MS: windowMs } = settings;
    const upload = new Upload(request, { maxBytes, rate: { bytesPerSecond, windowMs } });
    await this.refuseBeyondQuota(request, organizationId, upload.minBytes);
    const file = await this.store({ ...(await upload.begin()), maxBytes });
    const draft = { file, owner: { agentId, ...uploaderFor(caller) }, organizationId };
    const answer = await this.orDiscard(file, this.finish(request, upload, draft));
    if (answer.replayed) await blobs.discard([file.blob_key]);
    return answer;
  }

  private async finish(
    request: ApiRequest<typeof operations.uploadFile>,
    upload: Upload,
    draft: UploadedDraft,
  ): Promise<Answer> {
    await upload.end();
    const { name, mime_type: type, sha256 } = draft.file;
    const key = await requestKey(request, operations.uploadFile, { name, type, sha256 });
    return this.options.idempotency.settle(request, key, this.makeDraft(draft, key));
  }

  async attachFile({ caller, input }: ApiRequest<typeof operations.attachFile>): Promise<ThreadFileAnswer> {
    const { access, threads, settings } = this.options;
    const { threadId } = input.params;
    const { agent } = await access.findVisibleThread(caller, threadId);
    if ('fileId' in input.body) {
      const { fileId } = input.body;
      await threads.attachDraft(threadId, fileId, agent.id, uploaderFor(caller));
      return this.readAttached(fileId);
    }
    const file = await this.store(decodeInline(input.body, settings.INLINE_FILE_LIMIT_BYTES));
    await this.orDiscard(file, threads.attachFile(threadId, file));
    return this.readAttached(file.id);
  }

  async listFiles({ caller, input }: ApiRequest<typeof operations.listFiles>): Promise<ListFilesAnswer> {
    const { threadId } = input.params;
    await this.options.access.findVisibleThread(caller, threadId);
    return { files: (await this.options.files.list(threadId)).map(renderThreadFile) };
  }

  async getFile({ caller, input }: ApiRequest<typeof operations.getFile>): Promise<PublicFileAnswer> {
    const { file } = await this.options.access.findVisibleFile(caller, input.params.fileId);
    return { file: input.extended ? renderExtendedFile(file) : renderPublicFile(file) };
  }

  async detachFile(request: ApiRequest<typeof operations.detachFile>): Promise<OkAnswer> {
    const { access, files } = this.options;
    const { caller, input } = request;
    const { threadId, fileId } = input.params;
    await access.findVisibleThread(caller, threadId);
    const file = await files.find(fileId);
    if (file?.thread_id !== threadId) throw notFound('File');
    await this.removeFromThread(request, file, 'detach_file');
    return { ok: true };
  }

  async deleteFile(request: ApiRequest<typeof operations.deleteFile>): Promise<OkAnswer> {
    const { access, blobs, files } = this.options;
    const { caller, input } = request;
    const { fileId } = input.params;
    const { file } = await access.findVisibleFile(caller, fileId);
    // The bytes of a draft never change.
    isNotModified(request, etagOf(file));
    const draft = file.thread_id === null ? await files.deleteDraft(fileId) : null;
    if (draft !== null) await blobs.discard([draft]);
    else {
      // If the draft does not exist, a concurrent request may have attached it, even to the Thread of another user.
      const attached = file.thread_id === null ? (await access.findVisibleFile(caller, fileId)).file : file;
      await this.removeFromThread(request, attached, 'delete_file');
    }
    return { ok: true };
  }

  /** Throws ApiError beyond the quota. Admits a request with a known key, because a replay needs no quota. */
  private async refuseBeyondQuota(request: ApiRequest, organizationId: string, minBytes: number): Promise<void> {
    const { files, idempotency } = this.options;
    // A full quota has no room for one byte.
    if (await files.hasRoomFor(organizationId, Math.max(1, minBytes))) return;
    if (!(await idempotency.isKeyKnown(request))) throw fileQuotaFull();
  }

  private async makeDraft(draft: UploadedDraft, key: RequestKey): Promise<{ body: string }> {
    const { files, settings } = this.options;
    const isOfUser = draft.owner.userId !== null;
    const maxDrafts = isOfUser ? settings.DRAFTS_PER_BROWSER_USER : settings.DRAFTS_PER_TOKEN;
    const render = (created_at: string) => JSON.stringify({ file: renderPublicFile({ ...draft.file, created_at }) });
    const answer = key.key === undefined ? undefined : key;
    const stored = await files.storeDraft({ ...draft, maxDrafts, answer, render });
    switch (stored.outcome) {
      case 'stored':
        return stored;
      case 'key_taken':
        throw keyInProgress();
      case 'full':
        throw tooManyDrafts(maxDrafts);
      case 'quota_full':
        throw fileQuotaFull();
      case 'bytes_gone':
        throw busyNow('upload_too_slow', 'The upload took too long; repeat it.');
    }
  }

  private async store(source: FileSource): Promise<PreparedFile> {
    try {
      return await storeAttachment(this.options.blobs, source);
    } catch (error) {
      if (error instanceof BlobTooLarge) throw fileTooLarge(`A file can have at most ${source.maxBytes} bytes.`);
      throw error;
    }
  }

  /** Deletes the bytes immediately if the file was refused. After any other error, leaves them to the sweeper. */
  private async orDiscard<T>({ blob_key }: PreparedFile, made: Promise<T>): Promise<T> {
    return made.catch(async (error: unknown) => {
      if (isRefusal(error)) await this.options.blobs.discard([blob_key]);
      throw error;
    });
  }

  /** Removes the file if it still has the bytes for which the request's conditions were checked. Throws ApiError. */
  private async removeFromThread(
    request: FastifyRequest,
    file: FileRow,
    type: 'detach_file' | 'delete_file',
  ): Promise<void> {
    isNotModified(request, etagOf(file));
    const { threads, blobs, files } = this.options;
    const { id: fileId, name, kind } = file;
    const sha256 = isConditional(request) ? file.sha256 : undefined;
    try {
      await threads.removeFile(file.thread_id ?? '', { type, fileId, name, kind }, sha256);
    } catch (error) {
      if (!(error instanceof ThreadRefused) || error.refusal.reason !== 'file_changed') throw error;
      const now = await files.find(file.id);
      if (now === null || now.sha256 === file.sha256) throw notFound('File');
      return this.removeFromThread(request, now, type);
    }
    await blobs.discard([file.blob_key]);
  }

  private async readAttached(fileId: string): Promise<ThreadFileAnswer> {
    const file = await this.options.files.find(fileId);
    // Another request has deleted the file.
    if (file === null) throw notFound('File');
    return { file: renderThreadFile(file) };
  }
}

function decodeInline(
  { name, contentType, contentBase64 }: Exclude<AttachFileBody, { fileId: string }>,
  maxBytes: number,
): FileSource {
  const size = Buffer.byteLength(contentBase64, 'base64');
  if (size > maxBytes) throw fileTooLarge(`A file within a request can have at most ${maxBytes} bytes.`);
  return { name, bytes: decodeBase64(contentBase64), declaredType: contentType, maxBytes };
}

/** The characters of Base64 decoded in one step. A multiple of four, because four characters are three bytes. */
const DECODED_AT_ONCE = BOUNDS.files.inline.value;

/** Decodes in steps, each in a turn of the event loop. */
async function* decodeBase64(text: string): AsyncGenerator<Buffer> {
  for (let from = 0; from < text.length; from += DECODED_AT_ONCE) {
    if (from > 0) await ownTurn();
    yield Buffer.from(text.slice(from, from + DECODED_AT_ONCE), 'base64');
  }
}

/** Returns the refusal beyond the limit of drafts. Deleting or attaching a draft makes room before it expires. */
function tooManyDrafts(maxDrafts: number): ApiError {
  const message = `The caller has ${maxDrafts} drafts that no Thread has: delete or attach some.`;
  return rateLimited('too_many_drafts', message, 60);
}
