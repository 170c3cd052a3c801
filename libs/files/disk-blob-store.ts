import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { BlobMissing, BlobStoreAway, isBlobKey } from './blob-store.ts';
import { takeSource } from './take-source.ts';
import type { BlobSource, BlobStore, ByteRange, StoredBlob } from './blob-store.ts';

/** Blobs as files in a folder. What a killed process leaves is in `incoming/`, never under a key. */
export class DiskBlobStore implements BlobStore {
  constructor(private readonly folder: string) {}

  async put(key: string, source: BlobSource, { maxBytes = Infinity }: { maxBytes?: number } = {}): Promise<StoredBlob> {
    const incoming = this.incoming(key);
    const file = await orAway(() => createIncoming(incoming));
    try {
      const written = await writeAll(file, source, maxBytes).finally(() => file.close());
      await orAway(() => moveDurably(incoming, join(this.folder, key)));
      return written;
    } catch (error) {
      await rm(incoming, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async get(key: string, range?: ByteRange): Promise<Readable> {
    if (!isBlobKey(key)) throw new BlobMissing(`There is no blob ${key}.`);
    try {
      const file = await open(join(this.folder, key), 'r');
      return file.createReadStream(range ?? {});
    } catch (error) {
      if (hasCode(error, 'ENOENT')) throw new BlobMissing(`There is no blob ${key}.`);
      throw new BlobStoreAway(error);
    }
  }

  async delete(key: string): Promise<void> {
    if (!isBlobKey(key)) return;
    await orAway(() => rm(this.incoming(key), { force: true }));
    await orAway(() => rm(join(this.folder, key), { force: true }));
  }

  private incoming(key: string): string {
    return join(this.folder, 'incoming', key.replace('/', ''));
  }
}

async function createIncoming(path: string): Promise<FileHandle> {
  const made = await mkdir(dirname(path), { recursive: true });
  if (made !== undefined) await syncDirectory(dirname(made));
  return open(path, 'wx', 0o600);
}

/** Its own failures only are BlobStoreAway. */
async function writeAll(file: FileHandle, source: BlobSource, maxBytes: number): Promise<StoredBlob> {
  const written = await takeSource(source, maxBytes, (chunk) => orAway(() => file.writeFile(chunk)));
  await orAway(() => file.sync());
  return written;
}

/** After this a power cut finds the file under its new name: a rename is durable once its directory is. */
async function moveDurably(from: string, to: string): Promise<void> {
  const made = await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
  await syncDirectory(dirname(to));
  if (made !== undefined) await syncDirectory(dirname(made));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}

async function orAway<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new BlobStoreAway(error);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
