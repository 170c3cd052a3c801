import type { PoolClient } from 'pg';
import type { ThreadOwner } from '#domain';
import type { AppendHook } from '#event-store';
import { namedStatement, queryTimeout, type FileQuota, type NamedStatement } from '#platform';
import type { PreparedFile } from './store-file.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const CHANGE_FILES = sql('change-files.sql');
const CHANGE_FOLDER = sql('change-folder.sql');
const CHECK_FILE_QUOTA = sql('check-file-quota.sql');
const LOCK_FOLDER = sql('lock-folder.sql');

/** The changes of files in one append. All of them are made, or nothing is appended. */
export interface FileChanges {
  added?: readonly PreparedFile[];
  claimed?: DraftClaim;
  /** Files of the Thread to delete. The sweeper deletes their bytes. */
  removed?: readonly string[];
  /** The bytes that each of `removed` must still have. */
  removedSha256?: string;
  /** The most attachments that the Thread may have after the append. */
  maxAttachments?: number;
  /** The largest number of artifacts outside the folder after an append that adds files. */
  maxArtifacts?: number;
  folder?: FolderChanges | undefined;
}

/** The changes of the folder that the Thread's agent works in. */
export interface FolderChanges {
  /** The Thread, or its agent, for a pet. */
  folderId: string;
  /** At most one for each path. */
  changes: readonly FolderChange[];
  /** The most files and bytes of the folder after the append. Changes that only remove files may exceed them. */
  maxFiles: number;
  maxBytes: number;
}

/** The change of one path. `basedOn` is the blob that the change expects there, null for none. */
export type FolderChange =
  | { does: 'add'; path: string; basedOn: null; file: PreparedFile }
  /** A file of the Thread keeps its row and gets the bytes of `file`. */
  | { does: 'replace'; path: string; basedOn: string; file: PreparedFile }
  /** A file of another Thread stays in that Thread, and `file` gets its path. */
  | { does: 'take_over'; path: string; basedOn: string; file: PreparedFile }
  /** A file of the Thread is deleted. */
  | { does: 'remove'; path: string; basedOn: string; file: null }
  /** A file of another Thread stays in that Thread, without a path. */
  | { does: 'give_up'; path: string; basedOn: string; file: null };

/** Drafts to attach. All must have this owner, and be at most `maxAgeMs` old. */
export interface DraftClaim {
  fileIds: readonly string[];
  owner: DraftOwner;
  maxAgeMs: number;
}

/** The person or service token that a draft belongs to, and the user of a browser token of that service token; null: any. */
export interface Uploader extends ThreadOwner {
  userId: string | null;
}

/** The agent that a draft is for, and its owner. */
export interface DraftOwner extends Uploader {
  agentId: string;
}

const NO_OWNER = { agentId: null, personId: null, serviceTokenId: null, userId: null };

/**
 * The reasons to refuse an append for its files.
 *
 * - `files_refused`: a draft, a file or bytes were not as the append needs them. `files_full`: too many attachments.
 * - `folder_moved`: a path of the folder was not as its change needs it. `folder_full`: the folder would be too large.
 * - `artifacts_full`: the Thread would have too many artifacts outside the folder.
 * - `quota_full`: the organization would have too many files or bytes.
 */
export type FileRefusal =
  | 'files_refused'
  | 'files_full'
  | 'folder_moved'
  | 'folder_full'
  | 'artifacts_full'
  | 'quota_full';

/** Returns the hook that makes the changes in the transaction of an append. */
export function fileChangesHook(files: FileChanges, quota: FileQuota): AppendHook<FileRefusal> {
  return {
    lock: files.folder?.folderId,
    after: (client, { after: { threadId, summaries } }, timeoutMs) => {
      const organizationId = summaries.thread?.organization_id ?? null;
      return changeFiles(client, { threadId, organizationId, files, quota }, timeoutMs);
    },
  };
}

interface FilesOfAppend {
  threadId: string;
  organizationId: string | null;
  files: FileChanges;
  quota: FileQuota;
}

/** The files and bytes that an organization gets. */
interface Growth {
  files: number;
  bytes: number;
}

async function changeFiles(
  client: PoolClient,
  { threadId, organizationId, files, quota }: FilesOfAppend,
  timeoutMs?: number,
): Promise<FileRefusal | null> {
  const { claimed, removed = [], removedSha256 = null, folder } = files;
  const { maxAttachments = Infinity, maxArtifacts = Infinity } = files;
  const inFolder = folder && (await changeFolder(client, threadId, folder, timeoutMs));
  if (typeof inFolder === 'string') return inFolder;
  const added = [...(files.added ?? []), ...(folder ? placedFiles(folder) : [])];
  const { fileIds, owner, maxAgeMs } = claimed ?? { fileIds: [], owner: NO_OWNER, maxAgeMs: 0 };
  const { agentId, personId, serviceTokenId, userId } = owner;
  const blobKeys = added.map(({ blob_key }) => blob_key);
  const claim = [fileIds, agentId, personId, serviceTokenId];
  const changes = [threadId, JSON.stringify(added), ...claim, removed, maxAgeMs, blobKeys];
  const values = [...changes, removedSha256, userId];
  const { rows } = await client.query<ChangedFiles>({ ...CHANGE_FILES, ...queryTimeout(timeoutMs), values });
  const done = rows[0]!;
  const asWanted = done.added === added.length && done.claimed === fileIds.length && done.removed === removed.length;
  if (!asWanted) return 'files_refused';
  if (done.attachments > maxAttachments) return 'files_full';
  if (added.length > 0 && done.artifacts > maxArtifacts) return 'artifacts_full';
  const { files: filesInFolder = 0, bytes: bytesInFolder = 0 } = inFolder ?? {};
  const growth = {
    files: filesInFolder + added.length - removed.length,
    bytes: bytesInFolder + bytesOf(added) - done.removedBytes,
  };
  return (await isBeyondQuota(client, { organizationId, growth, quota }, timeoutMs)) ? 'quota_full' : null;
}

interface ChangedFiles {
  added: number;
  claimed: number;
  removed: number;
  removedBytes: number;
  attachments: number;
  artifacts: number;
}

const bytesOf = (files: readonly { size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0);

/** Returns whether the organization exceeds its quota of files or bytes, and the append added to the same quota. */
async function isBeyondQuota(
  client: PoolClient,
  { organizationId, growth, quota }: { organizationId: string | null; growth: Growth; quota: FileQuota },
  timeoutMs?: number,
): Promise<boolean> {
  if (growth.files <= 0 && growth.bytes <= 0) return false;
  const values = [organizationId, quota.maxFiles, quota.maxBytes, growth.files, growth.bytes];
  const { rows } = await client.query<{ exceeded: boolean | null }>({
    ...CHECK_FILE_QUOTA,
    ...queryTimeout(timeoutMs),
    values,
  });
  return rows[0]?.exceeded ?? false;
}

/** Removes and replaces files of the folder. Returns the refusal, or the growth without the files that are added later. */
async function changeFolder(
  client: PoolClient,
  threadId: string,
  { folderId, changes, maxFiles, maxBytes }: FolderChanges,
  timeoutMs?: number,
): Promise<'folder_moved' | 'folder_full' | Growth> {
  await client.query({ ...LOCK_FOLDER, ...queryTimeout(timeoutMs), values: [folderId] });
  const rows = changes.map(({ file, ...change }) => ({ ...file, ...change }));
  const replacing = changes.flatMap(({ does, file }) => (does === 'replace' ? [file] : []));
  const blobKeys = replacing.map(({ blob_key }) => blob_key);
  const values = [threadId, folderId, JSON.stringify(rows), blobKeys];
  const changed = await client.query<ChangedFolder>({ ...CHANGE_FOLDER, ...queryTimeout(timeoutMs), values });
  const { done, files, bytes, freedBytes } = changed.rows[0]!;
  if (done !== changes.length) return 'folder_moved';
  const isHeld = changes.some(({ file }) => file !== null);
  if (isHeld && (files > maxFiles || bytes > maxBytes)) return 'folder_full';
  const removed = changes.filter(({ does }) => does === 'remove').length;
  return { files: -removed, bytes: bytesOf(replacing) - freedBytes };
}

interface ChangedFolder {
  done: number;
  files: number;
  bytes: number;
  /** Bytes of the files that were replaced or removed. */
  freedBytes: number;
}

/** Returns the rows that are added to the folder. */
function placedFiles({ folderId, changes }: FolderChanges): (PreparedFile & { folder_id: string; path: string })[] {
  return changes.flatMap(({ does, path, file }) =>
    does === 'add' || does === 'take_over' ? [{ ...file, folder_id: folderId, path }] : [],
  );
}
