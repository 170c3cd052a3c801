import { FileRefused, type FolderFile, type ToolFiles } from '#agents';
import { folderPath, foldersOf, isReadOnlyPath, type RecordedFact } from '#domain';
import {
  BlobTooLarge,
  storeArtifact,
  type ByteRange,
  type FolderChange,
  type FolderChanges,
  type FolderRow,
  type PreparedFile,
} from '#files';
import type { ToolFileRefusal } from './claim.ts';
import { MAX_ARTIFACTS, orUnavailable, visibleFiles, type ThreadFolder } from './thread-folder.ts';

const QUOTA_FULL =
  'Nothing was stored: the organization has reached its file quota. Delete files or ask for a larger quota.';

const ARTIFACTS_FULL =
  `Nothing was stored: a Thread can have at most ${MAX_ARTIFACTS} files below artifacts/. ` +
  'Ask the user to delete some.';

/**
 * The folder as one tool call sees it: a snapshot from its first look, with the call's own changes. Bytes are stored immediately.
 * They become files with the tool's result, if no other call has changed the same paths meanwhile.
 */
export class StagedFolder implements ToolFiles {
  private seen: Promise<FolderRow[]> | null = null;
  private readonly staged = new Map<string, FolderChange>();

  constructor(private readonly folder: ThreadFolder) {}

  async list(): Promise<readonly FolderFile[]> {
    return visibleFiles(await this.look());
  }

  read(file: FolderFile, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    return this.folder.read(file, range);
  }

  async write(given: string, bytes: Uint8Array): Promise<{ fileId: string }> {
    const path = writablePath(given);
    const rows = await this.look();
    this.refuseCrossing(path, rows);
    this.refuseBeyondLimits(path, bytes.byteLength, rows);
    const file = await this.store(path, bytes);
    await this.forget(path);
    const old = rows.find((row) => row.path === path);
    this.staged.set(path, this.changeTo(file, path, old));
    return { fileId: old !== undefined && this.isOwn(old) ? old.id : file.id };
  }

  async remove(given: string): Promise<void> {
    const path = writablePath(given);
    const old = (await this.look()).find((row) => row.path === path);
    if (old === undefined && !this.staged.has(path)) throw new FileRefused(`There is no file ${path}.`);
    await this.forget(path);
    if (old === undefined) return;
    const does = this.isOwn(old) ? 'remove' : 'give_up';
    this.staged.set(path, { does, path, basedOn: old.blob_key, file: null });
  }

  /** Returns the call's changes for the append of its result; undefined if there are none. */
  changes(): FolderChanges | undefined {
    if (this.staged.size === 0) return undefined;
    const { maxFiles, maxBytes } = this.folder.limits;
    return { folderId: this.folder.place.folderId, changes: [...this.staged.values()], maxFiles, maxBytes };
  }

  /** Returns the facts of the changes, only for files of this Thread. */
  async facts(): Promise<RecordedFact[]> {
    const rows = this.staged.size > 0 ? await this.look() : [];
    return [...this.staged.values()].flatMap(({ does, path, file }): RecordedFact[] => {
      if (does === 'add' || does === 'take_over') return newFileFacts(file);
      const old = rows.find((row) => row.path === path);
      if (does === 'give_up' || old === undefined) return [];
      const data = { fileId: old.id, name: old.name, kind: old.kind };
      if (does === 'replace') return [{ type: 'file.changed', data: { ...data, action: 'changed' } }];
      return [{ type: 'files.updated', data: { ...data, change: 'deleted' } }];
    });
  }

  /** Drops the changes, and removes the bytes that it has stored. */
  async drop(): Promise<void> {
    const keys = [...this.staged.values()].flatMap(({ file }) => (file === null ? [] : [file.blob_key]));
    this.staged.clear();
    if (keys.length > 0) await this.folder.blobs.discard(keys);
  }

  /** Returns the text for a model whose changes were refused. */
  refusalOf(refusal: ToolFileRefusal): string {
    if (refusal === 'quota_full') return QUOTA_FULL;
    if (refusal === 'artifacts_full') return ARTIFACTS_FULL;
    if (refusal === 'folder_full') return this.fullMessage();
    const paths = [...this.staged.keys()].join(', ');
    return `Nothing was changed: another call changed ${paths} meanwhile. Read again.`;
  }

  private look(): Promise<FolderRow[]> {
    this.seen ??= this.folder.rows();
    return this.seen;
  }

  private isOwn({ thread_id }: FolderRow): boolean {
    return thread_id === this.folder.place.threadId;
  }

  private changeTo(file: PreparedFile, path: string, old: FolderRow | undefined): FolderChange {
    if (old === undefined) return { does: 'add', path, basedOn: null, file };
    return { does: this.isOwn(old) ? 'replace' : 'take_over', path, basedOn: old.blob_key, file };
  }

  private async store(path: string, bytes: Uint8Array): Promise<PreparedFile> {
    const { blobs, limits, place } = this.folder;
    const source = { name: path, bytes, maxBytes: limits.maxFileBytes };
    try {
      return await orUnavailable(storeArtifact(blobs, place.runId, source));
    } catch (error) {
      if (error instanceof BlobTooLarge) throw new FileRefused(`A file can have at most ${limits.maxFileBytes} bytes.`);
      throw error;
    }
  }

  /** Drops the staged change of a path, because the call changes it again. */
  private async forget(path: string): Promise<void> {
    const file = this.staged.get(path)?.file;
    this.staged.delete(path);
    if (file) await this.folder.blobs.discard([file.blob_key]);
  }

  /** Throws FileRefused if a path would be both a file and a folder. */
  private refuseCrossing(path: string, rows: readonly FolderRow[]): void {
    const paths = this.pathsBeside(path, rows);
    const file = foldersOf(path).find((folder) => paths.has(folder));
    if (file !== undefined) throw new FileRefused(`${file} is a file, not a folder.`);
    const isFolder = [...paths.keys()].some((other) => other.startsWith(`${path}/`));
    if (isFolder) throw new FileRefused(`${path} is a folder.`);
  }

  /** Throws FileRefused before bytes are stored unnecessarily. The append checks again. */
  private refuseBeyondLimits(path: string, size: number, rows: readonly FolderRow[]): void {
    const { maxFiles, maxBytes } = this.folder.limits;
    const others = this.pathsBeside(path, rows);
    const bytes = [...others.values()].reduce((sum, of) => sum + of, size);
    if (others.size + 1 > maxFiles || bytes > maxBytes) throw new FileRefused(this.fullMessage());
  }

  private fullMessage(): string {
    const { maxFiles, maxBytes } = this.folder.limits;
    return `The folder can have at most ${maxFiles} files and ${maxBytes} bytes in all. Delete some first.`;
  }

  /** Returns the other paths of the folder with the call's changes, and their sizes. */
  private pathsBeside(path: string, rows: readonly FolderRow[]): Map<string, number> {
    const sizes = new Map<string, number>();
    for (const row of rows) if (row.path !== null) sizes.set(row.path, row.size);
    for (const [changed, { file }] of this.staged) {
      if (file === null) sizes.delete(changed);
      else sizes.set(changed, file.size);
    }
    sizes.delete(path);
    return sizes;
  }
}

function writablePath(given: string): string {
  const found = folderPath(given);
  if ('refused' in found) throw new FileRefused(`The path ${found.refused}.`);
  if (isReadOnlyPath(found.path)) throw new FileRefused('attachments/ and artifacts/ are read-only.');
  return found.path;
}

/** Returns the facts of a file that a Run has made. */
export function newFileFacts({ id: fileId, name, kind }: PreparedFile): RecordedFact[] {
  return [
    { type: 'file.changed', data: { fileId, name, kind, action: 'created' } },
    { type: 'files.updated', data: { fileId, name, kind, change: 'attached' } },
  ];
}
