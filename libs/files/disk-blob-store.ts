import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { BlobMissing, BlobStoreUnavailable, isBlobKey } from './blob-store.ts';
import { MeasuredSource } from './measured-source.ts';
import type { BlobSource, BlobStore, ByteRange, StoredBlob } from './blob-store.ts';

/**
 * Blobs as files in a folder. A killed process leaves bytes in `incoming/`, never under a key. Without `incoming/` the folder is
 * not the store, such as the mount point of a volume that is not mounted. Then all operations throw BlobStoreUnavailable.
 */
export class DiskBlobStore implements BlobStore {
  /** @param mayCreate whether a put may create the store in the folder; default: always */
  constructor(
    private readonly folder: string,
    private readonly mayCreate: () => Promise<boolean> = () => Promise.resolve(true),
  ) {}

  async put(key: string, source: BlobSource, { maxBytes = Infinity }: { maxBytes?: number } = {}): Promise<StoredBlob> {
    const incoming = this.incoming(key);
    const file = await this.create(incoming);
    try {
      const written = await writeAndClose(file, source, maxBytes);
      await orUnavailable(() => moveDurably(incoming, join(this.folder, key)));
      return written;
    } catch (error) {
      await rm(incoming, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async get(key: string, range?: ByteRange): Promise<Readable> {
    if (!isBlobKey(key)) throw new BlobMissing(`There is no blob ${key}.`);
    const file = await this.orMissing(key, () => open(join(this.folder, key), 'r'));
    return file.createReadStream(range ?? {});
  }

  async size(key: string): Promise<number> {
    if (!isBlobKey(key)) throw new BlobMissing(`There is no blob ${key}.`);
    return (await this.orMissing(key, () => stat(join(this.folder, key)))).size;
  }

  async delete(key: string): Promise<void> {
    if (!isBlobKey(key)) return;
    await orUnavailable(() => rm(this.incoming(key), { force: true }));
    await orUnavailable(() => rm(join(this.folder, key), { force: true }));
  }

  private async orMissing<T>(key: string, look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw new BlobStoreUnavailable(error);
      await orUnavailable(() => stat(join(this.folder, 'incoming')));
      throw new BlobMissing(`There is no blob ${key}.`);
    }
  }

  /** Throws BlobStoreUnavailable, and what `mayCreate` throws. */
  private async create(incoming: string): Promise<FileHandle> {
    const create = (): Promise<FileHandle> => open(incoming, 'wx', 0o600);
    try {
      return await create();
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw new BlobStoreUnavailable(error);
      const cure = 'mount its volume or create it (docs/operations/files.md)';
      if (!(await this.mayCreate()))
        throw new BlobStoreUnavailable(new Error(`The directory ${dirname(incoming)} does not exist; ${cure}.`));
      await orUnavailable(() => makeDurably(dirname(incoming)));
      return orUnavailable(create);
    }
  }

  private incoming(key: string): string {
    return join(this.folder, 'incoming', key.replace('/', ''));
  }
}

/** Writes the source to the file and closes it. Throws BlobStoreUnavailable only for failures of the file. */
async function writeAndClose(file: FileHandle, source: BlobSource, maxBytes: number): Promise<StoredBlob> {
  try {
    const measured = new MeasuredSource(source, maxBytes);
    for await (const chunk of measured.chunks()) await orUnavailable(() => file.writeFile(chunk));
    await orUnavailable(() => file.sync());
    return measured.end();
  } finally {
    await file.close();
  }
}

async function makeDurably(folder: string): Promise<void> {
  const made = await mkdir(folder, { recursive: true });
  if (made !== undefined) await syncDirectory(dirname(made));
}

/** Moves a file so that a power cut cannot undo it. A rename is durable once its directory is. */
async function moveDurably(from: string, to: string): Promise<void> {
  await makeDurably(dirname(to));
  await rename(from, to);
  await syncDirectory(dirname(to));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function orUnavailable<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new BlobStoreUnavailable(error);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
