import { FileRefused, HarnessError, type FolderFile, type ThreadFiles } from '#agents';
import { ARTIFACTS_FOLDER, ATTACHMENTS_FOLDER, BOUNDS, distinctNamer } from '#domain';
import {
  fileMetrics,
  BlobMissing,
  BlobStoreUnavailable,
  type BlobKeeper,
  type ByteRange,
  type FileRow,
  type FileStore,
  type FolderRow,
} from '#files';
import { isDatabaseUnavailable, pauseIfLong } from '#platform';

export const MAX_ARTIFACTS = BOUNDS.files.artifacts.value;

export interface FolderParts {
  files: FileStore;
  blobs: BlobKeeper;
  limits: FolderLimits;
  place: FolderPlace;
}

export interface FolderLimits {
  /** The most files of a folder, and their total bytes. */
  maxFiles: number;
  maxBytes: number;
  /** The most bytes of one file that a Run makes. */
  maxFileBytes: number;
}

/** The owner of the files: a Thread, and the folder of its agent. `folderId` is the Thread's id, or for a pet the agent's. */
export interface FolderPlace {
  threadId: string;
  runId: string;
  folderId: string;
}

/** The files of a Thread as its agent sees them. No file is on this machine, so all workers see the same files. */
export class ThreadFolder implements ThreadFiles {
  readonly blobs: BlobKeeper;
  readonly limits: FolderLimits;
  readonly place: FolderPlace;
  private readonly files: FileStore;

  constructor({ files, blobs, limits, place }: FolderParts) {
    this.files = files;
    this.blobs = blobs;
    this.limits = limits;
    this.place = place;
  }

  async list(): Promise<readonly FolderFile[]> {
    return visibleFiles(await this.rows());
  }

  /** Returns the rows of the folder, oldest first. */
  rows(): Promise<FolderRow[]> {
    return orUnavailable(this.files.listFolder(this.place.threadId, this.place.folderId));
  }

  /** Reads the current bytes of a file, which may be newer than its listing. */
  async read(file: FolderFile, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    const row = await this.find(file);
    return row.size === 0 || (range && range.start >= row.size) ? nothing() : this.bytesOf(row, file, range);
  }

  private async find({ fileId, path }: FolderFile): Promise<FileRow> {
    const { threadId, folderId } = this.place;
    const row = await orUnavailable(this.files.find(fileId));
    const isSeen = row?.thread_id === threadId || row?.folder_id === folderId;
    if (row === null || !isSeen) throw new FileRefused(`The file ${path} no longer exists.`);
    return row;
  }

  /** Yields bytes of a file. Opens the blob on the first read, so that an unread stream needs no close. */
  private async *bytesOf(row: FileRow, file: FolderFile, range?: ByteRange): AsyncGenerator<Uint8Array> {
    try {
      yield* (await this.open(row, file, range)) as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw unavailable(error);
    }
  }

  private async open(row: FileRow, file: FolderFile, range?: ByteRange) {
    try {
      return await this.blobs.get(row.blob_key, range);
    } catch (error) {
      if (!(error instanceof BlobMissing)) throw error;
      // The file was rewritten after the look-up, and the old blob was already swept.
      const now = await this.find(file);
      if (now.blob_key !== row.blob_key) return this.blobs.get(now.blob_key, range);
      fileMetrics.lostFileReads.inc();
      await this.files.noteLost(row, true);
      throw new FileRefused(`The content of ${file.path} is lost: the file storage no longer has it.`);
    }
  }
}

/** Returns the files of the rows, sorted by the path that the agent sees. The rows are ordered oldest first. */
export async function visibleFiles(rows: readonly FolderRow[]): Promise<FolderFile[]> {
  const namers = { attachment: distinctNamer(), artifact: distinctNamer() };
  const files: FolderFile[] = [];
  for (const row of rows) {
    // A folder may have thousands of files with long names, and each is normalized.
    await pauseIfLong();
    const folder = row.kind === 'attachment' ? ATTACHMENTS_FOLDER : ARTIFACTS_FOLDER;
    files.push(
      row.path === null ? toFile(row, `${folder}/${namers[row.kind](row.name)}`, true) : toFile(row, row.path, false),
    );
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function toFile({ id: fileId, mime_type: mimeType, size }: FolderRow, path: string, readOnly: boolean): FolderFile {
  return { fileId, path, mimeType, size, readOnly };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Awaits the work. Throws `storage_unavailable`, which is retryable, if the storage or the database is unavailable. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw unavailable(error);
  }
}

function unavailable(error: unknown): unknown {
  const isUnavailable = error instanceof BlobStoreUnavailable || isDatabaseUnavailable(error);
  return isUnavailable ? new HarnessError('storage_unavailable', { cause: error }) : error;
}
