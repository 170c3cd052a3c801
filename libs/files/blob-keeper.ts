import type { Readable } from 'node:stream';
import type { Pool } from 'pg';
import { namedStatement, rethrowUnavailable, transact, type Logger } from '#platform';
import {
  BlobStoreUnavailable,
  newBlobKey,
  type BlobSource,
  type BlobStore,
  type ByteRange,
  type StoredBlob,
} from './blob-store.ts';

const NOTE_BLOB = namedStatement(import.meta.dirname, 'note-blob.sql');
const TAKE_DUE_BLOB = namedStatement(import.meta.dirname, 'take-due-blob.sql');
const PUT_OFF_BLOB = namedStatement(import.meta.dirname, 'put-off-blob.sql');
const FORGET_BLOBS = namedStatement(import.meta.dirname, 'forget-blobs.sql');

/** The time until the next try to delete bytes after a failure. */
const PUT_OFF_MS = 10 * 60 * 1_000;

export interface PutOptions {
  maxBytes: number;
  /**
   * How long the bytes may wait for the commit that makes a file of them, milliseconds: longer than their request or step can
   * take. The commit removes the note for the sweeper, and is refused if the bytes are gone.
   */
  claimWithinMs: number;
}

export interface BlobKeeperOptions {
  pool: Pool;
  store: BlobStore;
  logger: Logger;
}

/**
 * The bytes of files. No bytes stay without a file: each key is noted in `unclaimed_blobs` before its bytes are stored, and
 * when its file is deleted. Bytes that a crash leaves are found without listing the store.
 */
export class BlobKeeper {
  constructor(private readonly options: BlobKeeperOptions) {}

  /** Stores bytes under a new key, as BlobStore.put does. Also throws DatabaseUnavailable. */
  async put(source: BlobSource, options: PutOptions): Promise<StoredBlob & { key: string }> {
    const { pool, store } = this.options;
    const key = newBlobKey();
    await pool.query({ ...NOTE_BLOB, values: [key, options.claimWithinMs] }).catch(rethrowUnavailable);
    try {
      return { key, ...(await store.put(key, source, options)) };
    } catch (error) {
      // A storage that does not answer would make the caller wait again, and may still store the bytes after the note is
      // removed. The sweeper deletes them when they are due.
      if (!(error instanceof BlobStoreUnavailable)) await this.discard([key]);
      throw error;
    }
  }

  get(key: string, range?: ByteRange): Promise<Readable> {
    return this.options.store.get(key, range);
  }

  /** Returns the size as BlobStore.size does. */
  size(key: string): Promise<number> {
    return this.options.store.size(key);
  }

  /** Deletes noted bytes that no file has. Logs a failure and leaves the bytes to the sweeper. */
  async discard(keys: readonly string[]): Promise<void> {
    const { pool, logger } = this.options;
    try {
      await this.remove(keys);
      await pool.query({ ...FORGET_BLOBS, values: [keys] });
    } catch (error) {
      logger.warn({ err: error, keys }, 'blob deletion failed; left to the sweeper');
    }
  }

  /** Deletes the bytes that are due longest. Returns whether there were any. Throws BlobStoreUnavailable, DatabaseUnavailable. */
  async sweep(): Promise<boolean> {
    const { pool, store } = this.options;
    let key: string | undefined;
    try {
      // In one transaction: a commit that claims the bytes waits, and then finds that they are gone.
      await transact(pool, async (client) => {
        const { rows } = await client.query<{ key: string }>(TAKE_DUE_BLOB);
        key = rows[0]?.key;
        if (key !== undefined) await store.delete(key);
      });
      return key !== undefined;
    } catch (error) {
      // Bytes that cannot be deleted must not block the others.
      if (key !== undefined) await pool.query({ ...PUT_OFF_BLOB, values: [key, PUT_OFF_MS] }).catch(rethrowUnavailable);
      throw error;
    }
  }

  private async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.options.store.delete(key);
  }
}
