import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { BlobMissing, BlobStoreAway, BlobTooLarge } from './blob-store.ts';
import type { BlobSource, BlobStore, ByteRange, StoredBlob } from './blob-store.ts';

/** Keys are ours alone: what does not look like one cannot name a path. */
const KEY = /^[0-9a-f]{2}\/[0-9a-f]{30}$/;

/** Blobs as files in a folder. What a killed process leaves is in `incoming/`, never under a key. */
export class DiskBlobStore implements BlobStore {
  constructor(private readonly folder: string) {}

  async put(source: BlobSource, { maxBytes = Infinity }: { maxBytes?: number } = {}): Promise<StoredBlob> {
    const name = randomUUID().replaceAll('-', '');
    const key = `${name.slice(0, 2)}/${name.slice(2)}`;
    const incoming = join(this.folder, 'incoming', name);
    const file = await orAway(() => createIncoming(incoming));
    try {
      const written = await writeAll(file, source, maxBytes).finally(() => file.close());
      await orAway(() => moveDurably(incoming, join(this.folder, key)));
      return { key, ...written };
    } catch (error) {
      await rm(incoming, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async get(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    if (!KEY.test(key)) throw new BlobMissing(`There is no blob ${key}.`);
    try {
      const file = await open(join(this.folder, key), 'r');
      return file.createReadStream(range ?? {});
    } catch (error) {
      if (hasCode(error, 'ENOENT')) throw new BlobMissing(`There is no blob ${key}.`);
      throw new BlobStoreAway(error);
    }
  }

  async delete(key: string): Promise<void> {
    if (KEY.test(key)) await orAway(() => rm(join(this.folder, key), { force: true }));
  }
}

async function createIncoming(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true });
  return open(path, 'wx', 0o600);
}

/** Writes, counts and hashes in one pass, so that a file is never whole in memory. Its own failures only are BlobStoreAway. */
async function writeAll(file: FileHandle, source: BlobSource, maxBytes: number): Promise<Omit<StoredBlob, 'key'>> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of source instanceof Uint8Array ? [source] : source) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new BlobTooLarge(`More than ${maxBytes} bytes.`);
    hash.update(chunk);
    await orAway(() => file.writeFile(chunk));
  }
  await orAway(() => file.sync());
  return { size, sha256: hash.digest('hex') };
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
