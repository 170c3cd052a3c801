import type { ClientBase, DatabaseError, Pool, QueryConfig } from 'pg';
import type { AppendHook } from '#event-store';
import {
  BY_KEY,
  namedStatement,
  NO_FILE_QUOTA,
  rethrowUnavailable,
  transact,
  type FileQuota,
  type NamedStatement,
} from '#platform';
import {
  fileChangesHook,
  type DraftClaim,
  type DraftOwner,
  type FileChanges,
  type FileRefusal,
} from './file-changes.ts';
import type { PreparedFile } from './store-file.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const FIND_FILE = sql('find-file.sql');
const HAS_FILES = sql('has-files.sql');
const LIST_FILES = sql('list-files.sql');
const LIST_FOLDER = sql('list-folder.sql');
const FIND_LOST_DRAFTS = sql('find-lost-drafts.sql');
const FIND_DRAFT_NAMES = sql('find-draft-names.sql');
const LOCK_DRAFTS = sql('lock-drafts.sql');
const NOTE_LOST = sql('note-lost.sql');
const STORE_DRAFT = sql('store-draft.sql');
const CHECK_DRAFT_QUOTA = sql('check-draft-quota.sql');
const DELETE_DRAFT = sql('delete-draft.sql');
const PURGE_DRAFTS = sql('purge-drafts.sql');
const COUNT_OLD_FILES = sql('count-old-files.sql');

const PURGE_BATCH = 1_000;
const COUNT_BATCH = 1_000;
const UNIQUE_VIOLATION = '23505';

/** A row of `files`. A draft has no Thread, but an agent and an owner. */
export interface FileRow extends PreparedFile {
  thread_id: string | null;
  /** RFC 3339. */
  created_at: string;
  agent_id: string | null;
  owner_person_id: string | null;
  owner_service_token_id: string | null;
  /** The user whose browser token uploaded the draft. */
  owner_user_id: string | null;
  /** The folder in which the file has a path. */
  folder_id: string | null;
  /** The time when its bytes were found to be lost, RFC 3339. */
  lost_at: string | null;
}

/** A file as the agent of a Thread sees it. */
export interface FolderRow extends Pick<PreparedFile, 'id' | 'kind' | 'name' | 'mime_type' | 'size' | 'blob_key'> {
  thread_id: string;
  /** The path in the folder; null for a file of the Thread that is not in it. */
  path: string | null;
}

export interface NewDraft {
  file: PreparedFile;
  owner: DraftOwner;
  /** The organization of the agent. */
  organizationId: string;
  /** The most drafts that the owner can have. */
  maxDrafts: number;
  /** The idempotency key of the answer. `render` makes the answer from the time of creation. */
  answer?: { tokenId: string; key: string; fingerprint: string; status: number } | undefined;
  render: (createdAt: string) => string;
}

/**
 * `full`: the owner has too many drafts. `quota_full`: the organization has too many files or bytes. `bytes_gone`: the sweeper
 * deleted the bytes. `key_taken`: another request has the idempotency key, or is in progress under it.
 */
export type DraftOutcome =
  | { outcome: 'stored'; body: string }
  | { outcome: 'key_taken' | 'full' | 'quota_full' | 'bytes_gone' };

class BeyondQuota extends Error {}

/** `exceeded` is null if there is no limit. */
interface QuotaCheck {
  exceeded: boolean | null;
}

/** The rows of files: reads, drafts, and the changes that join an append. */
export class FileStore {
  constructor(
    private readonly pool: Pool,
    private readonly quota: FileQuota = NO_FILE_QUOTA,
  ) {}

  /** Returns the file, or null if there is none. Throws DatabaseUnavailable, as all methods do. */
  async find(fileId: string): Promise<FileRow | null> {
    const [row] = await this.read<FileRow>(FIND_FILE, [fileId]);
    return row ?? null;
  }

  /** Returns the hook that makes the changes in the transaction of an append. */
  inAppend(changes: FileChanges): AppendHook<FileRefusal> {
    return fileChangesHook(changes, this.quota);
  }

  /** Returns whether the installation has files. */
  async hasAny(): Promise<boolean> {
    const [row] = await this.read<{ found: boolean }>(HAS_FILES, []);
    return row!.found;
  }

  /** Notes that the blob store does not have the bytes of the file, or that it has them again. */
  async noteLost({ id, blob_key }: Pick<FileRow, 'id' | 'blob_key'>, isLost: boolean): Promise<void> {
    await this.read(NOTE_LOST, [id, blob_key, isLost]);
  }

  /** Returns the files of a Thread, oldest first. */
  async list(threadId: string): Promise<FileRow[]> {
    return this.read(LIST_FILES, [threadId]);
  }

  /** Returns the files of a folder, from all Threads, and those of this Thread without a path; oldest first. */
  async listFolder(threadId: string, folderId: string): Promise<FolderRow[]> {
    return this.read(LIST_FOLDER, [threadId, folderId]);
  }

  /** Returns the first of the claimed ids that is not a draft which the owner can attach now; null if all are. */
  async findLostDraft({ fileIds, owner, maxAgeMs }: DraftClaim): Promise<string | null> {
    const values = [fileIds, owner.agentId, owner.personId, owner.serviceTokenId, maxAgeMs, owner.userId];
    const [row] = await this.read<{ id: string }>(FIND_LOST_DRAFTS, values);
    return row?.id ?? null;
  }

  /** Returns the names of those files that are drafts, by their ids. The append checks whether the caller may use them. */
  async findDraftNames(fileIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.read<Pick<FileRow, 'id' | 'name'>>(FIND_DRAFT_NAMES, [fileIds]);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }

  /** Returns whether the quota has room for another file of this size. The commit that stores a file checks it again. */
  async hasRoomFor(organizationId: string, bytes: number): Promise<boolean> {
    const values = this.quotaValues(organizationId, { files: 1, bytes });
    const [row] = await this.read<QuotaCheck>(CHECK_DRAFT_QUOTA, values);
    return !row?.exceeded;
  }

  /** Stores a draft for stored bytes. After DatabaseUnavailable the draft may exist, because only the answer may be lost. */
  async storeDraft(draft: NewDraft): Promise<DraftOutcome> {
    const { owner, organizationId, render } = draft;
    try {
      return await transact(this.pool, async (client) => {
        const values = [owner.personId ?? owner.serviceTokenId];
        const locked = await client.query<{ now: string }>({ ...LOCK_DRAFTS, ...BY_KEY, values });
        const createdAt = locked.rows[0]!.now;
        const body = render(createdAt);
        const { rows } = await client.query<StoredDraft>({ ...storeStatement(draft, createdAt, body), ...BY_KEY });
        const outcome = draftOutcome(rows[0]!, body);
        if (outcome.outcome === 'stored') await this.throwBeyondQuota(client, organizationId);
        return outcome;
      });
    } catch (error) {
      if (error instanceof BeyondQuota) return { outcome: 'quota_full' };
      const { code, constraint } = error as DatabaseError;
      // Another request stored the key between our snapshot and our lock.
      if (code === UNIQUE_VIOLATION && constraint === 'idempotency_keys_pkey') return { outcome: 'key_taken' };
      throw error;
    }
  }

  /** Deletes a draft. Returns the blob that no file has any more, or null if there is no such draft. */
  async deleteDraft(fileId: string): Promise<string | null> {
    const [row] = await this.read<{ key: string }>(DELETE_DRAFT, [fileId]);
    return row?.key ?? null;
  }

  /** Deletes drafts that are older than `maxAgeMs`. Returns whether there may be more. */
  async purgeDrafts(maxAgeMs: number): Promise<boolean> {
    const [row] = await this.read<{ count: number }>(PURGE_DRAFTS, [maxAgeMs, PURGE_BATCH]);
    return row?.count === PURGE_BATCH;
  }

  /** Counts files that are older than the counters. Returns whether there may be more. */
  async countOldFiles(): Promise<boolean> {
    const [row] = await this.read<{ count: number }>(COUNT_OLD_FILES, [COUNT_BATCH]);
    return row?.count === COUNT_BATCH;
  }

  /** Throws BeyondQuota, which rolls the transaction back. */
  private async throwBeyondQuota(client: ClientBase, organizationId: string): Promise<void> {
    const values = this.quotaValues(organizationId, { files: 0, bytes: 0 });
    const { rows } = await client.query<QuotaCheck>({ ...CHECK_DRAFT_QUOTA, ...BY_KEY, values });
    if (rows[0]?.exceeded) throw new BeyondQuota();
  }

  private quotaValues(organizationId: string, more: { files: number; bytes: number }): unknown[] {
    return [organizationId, this.quota.maxFiles, this.quota.maxBytes, more.files, more.bytes];
  }

  private async read<Row>(statement: NamedStatement, values: unknown[]): Promise<Row[]> {
    const { rows } = await this.pool.query({ ...statement, ...BY_KEY, values }).catch(rethrowUnavailable);
    return rows as Row[];
  }
}

function storeStatement({ file, owner, maxDrafts, answer }: NewDraft, createdAt: string, body: string): QueryConfig {
  const values = [
    ...[file.id, file.name, file.mime_type, file.size, file.sha256, createdAt, file.blob_key],
    ...[owner.agentId, owner.personId, owner.serviceTokenId, maxDrafts],
    ...[answer?.tokenId, answer?.key, answer?.fingerprint, answer?.status],
    ...[answer && body, owner.userId],
  ];
  return { ...STORE_DRAFT, values };
}

interface StoredDraft {
  lockHeld: boolean;
  keySeen: boolean;
  hasRoom: boolean;
  stored: boolean;
}

function draftOutcome({ lockHeld, keySeen, hasRoom, stored }: StoredDraft, body: string): DraftOutcome {
  if (stored) return { outcome: 'stored', body };
  if (keySeen || !lockHeld) return { outcome: 'key_taken' };
  return { outcome: hasRoom ? 'bytes_gone' : 'full' };
}
