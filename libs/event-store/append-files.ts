import type { PoolClient } from 'pg';
import { namedStatement, type FileQuota, type NamedStatement } from '#platform';
import { limit } from './limit.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const CHANGE_FILES = sql('change-files.sql');
const CHANGE_FOLDER = sql('change-folder.sql');
const CHECK_FILE_QUOTA = sql('check-file-quota.sql');
const LOCK_FOLDER = sql('lock-folder.sql');

/** What an append does to files, all or none of it: else nothing is appended. */
export interface FileChanges {
  added?: readonly NewFile[];
  claimed?: DraftClaim;
  /** Files of the Thread that go; their bytes become the sweeper's. */
  removed?: readonly string[];
  /** The bytes that each of `removed` must still have. */
  removedSha256?: string;
  /** How many attachments the Thread may have then. */
  maxAttachments?: number;
  folder?: FolderChanges | undefined;
}

/** What an append does to the folder that its Thread's agent works in, all or none of it. */
export interface FolderChanges {
  /** The Thread, or its agent, for a pet. */
  folderId: string;
  /** Of each path one. */
  changes: readonly FolderChange[];
  /** How many files there may be in the folder then, and how many bytes in all. Who only removes is not held to them. */
  maxFiles: number;
  maxBytes: number;
}

/** One path of a folder; `basedOn` is the blob that was there, null for nothing: else the folder has moved on. */
export type FolderChange =
  | { does: 'add'; path: string; basedOn: null; file: NewFile }
  /** A file of the Thread has the bytes of `file` from then on, and stays what it is. */
  | { does: 'replace'; path: string; basedOn: string; file: NewFile }
  /** A file of another Thread stays that Thread's, and `file` has its place. */
  | { does: 'take_over'; path: string; basedOn: string; file: NewFile }
  /** A file of the Thread goes. */
  | { does: 'remove'; path: string; basedOn: string; file: null }
  /** A file of another Thread stays that Thread's, without a place. */
  | { does: 'give_up'; path: string; basedOn: string; file: null };

/** Drafts that are attached: all must be their owner's, of the Thread's agent, and no older than this, milliseconds. */
export interface DraftClaim {
  fileIds: readonly string[];
  agentId: string;
  ownerPersonId: string | null;
  ownerServiceTokenId: string | null;
  maxAgeMs: number;
}

/** A file that comes into being with the append; its bytes were put for it. */
export interface NewFile {
  id: string;
  run_id: string | null;
  kind: 'attachment' | 'artifact';
  name: string;
  mime_type: string | null;
  size: number;
  sha256: string;
  blob_key: string;
}

/** An append's changes of files, and whose they are. */
interface FilesOfAppend {
  threadId: string;
  organizationId: string | null;
  files: FileChanges;
  quota: FileQuota;
}

type FilesRefusal = 'files_refused' | 'files_full' | 'folder_moved' | 'folder_full' | 'quota_full';

/** Files and bytes that an organization has more than before. */
interface Growth {
  files: number;
  bytes: number;
}

/** Changes files in the transaction of the append. Returns why not; then it must be rolled back. Throws what pg throws. */
export async function changeFiles(
  client: PoolClient,
  { threadId, organizationId, files, quota }: FilesOfAppend,
  timeoutMs?: number,
): Promise<FilesRefusal | null> {
  const { claimed, removed = [], removedSha256 = null, maxAttachments = Infinity, folder } = files;
  const inFolder = folder && (await changeFolder(client, threadId, folder, timeoutMs));
  if (typeof inFolder === 'string') return inFolder;
  const added = [...(files.added ?? []), ...(folder ? placedFiles(folder) : [])];
  const {
    fileIds = [],
    agentId = null,
    ownerPersonId = null,
    ownerServiceTokenId = null,
    maxAgeMs = 0,
  } = claimed ?? {};
  const owner = [agentId, ownerPersonId, ownerServiceTokenId];
  const blobKeys = added.map(({ blob_key }) => blob_key);
  const changes = [threadId, JSON.stringify(added), fileIds, ...owner, removed, maxAgeMs, blobKeys];
  const values = [...changes, removedSha256];
  const { rows } = await client.query<ChangedFiles>({ ...CHANGE_FILES, ...limit(timeoutMs), values });
  const done = rows[0]!;
  const asWanted = done.added === added.length && done.claimed === fileIds.length && done.removed === removed.length;
  if (!asWanted) return 'files_refused';
  if (done.attachments > maxAttachments) return 'files_full';
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
}

const bytesOf = (files: readonly { size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0);

/** Returns whether the organization has too many files or bytes and has just got more of the same. */
async function isBeyondQuota(
  client: PoolClient,
  { organizationId, growth, quota }: { organizationId: string | null; growth: Growth; quota: FileQuota },
  timeoutMs?: number,
): Promise<boolean> {
  if (growth.files <= 0 && growth.bytes <= 0) return false;
  const values = [organizationId, quota.maxFiles, quota.maxBytes, growth.files, growth.bytes];
  const { rows } = await client.query<{ exceeded: boolean | null }>({
    ...CHECK_FILE_QUOTA,
    ...limit(timeoutMs),
    values,
  });
  return rows[0]?.exceeded ?? false;
}

/** Makes room in the folder for what comes in. Returns why that cannot be, or the growth without the rows that come in. */
async function changeFolder(
  client: PoolClient,
  threadId: string,
  { folderId, changes, maxFiles, maxBytes }: FolderChanges,
  timeoutMs?: number,
): Promise<'folder_moved' | 'folder_full' | Growth> {
  await client.query({ ...LOCK_FOLDER, ...limit(timeoutMs), values: [folderId] });
  const rows = changes.map(({ file, ...change }) => ({ ...file, ...change }));
  const replacing = changes.flatMap(({ does, file }) => (does === 'replace' ? [file] : []));
  const blobKeys = replacing.map(({ blob_key }) => blob_key);
  const values = [threadId, folderId, JSON.stringify(rows), blobKeys];
  const changed = await client.query<ChangedFolder>({ ...CHANGE_FOLDER, ...limit(timeoutMs), values });
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

/** The rows that come into the folder. */
function placedFiles({ folderId, changes }: FolderChanges): (NewFile & { folder_id: string; path: string })[] {
  return changes.flatMap(({ does, path, file }) =>
    does === 'add' || does === 'take_over' ? [{ ...file, folder_id: folderId, path }] : [],
  );
}
