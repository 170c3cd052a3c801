import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BlobMissing, BlobStoreUnavailable, newBlobKey } from './blob-store.ts';
import { describeBlobStore } from './blob-store.testsuite.ts';
import { DiskBlobStore } from './disk-blob-store.ts';
import { openBlobStore } from './open-blob-store.ts';

const folders: string[] = [];

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spool-blobs-'));
  folders.push(folder);
  return folder;
}

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

describeBlobStore('a folder', async () => new DiskBlobStore(join(await makeFolder(), 'made', 'by need')));

describe('DiskBlobStore', () => {
  it('leaves nothing behind when a put fails', async () => {
    const folder = await makeFolder();
    const store = new DiskBlobStore(folder);
    await expect(store.put(newBlobKey(), Buffer.alloc(10), { maxBytes: 5 })).rejects.toThrow();
    expect(await readdir(folder, { recursive: true })).toEqual(['incoming']);
  });

  it('deletes what a process that was killed during a put has left', async () => {
    const folder = await makeFolder();
    const key = newBlobKey();
    await mkdir(join(folder, 'incoming'));
    await writeFile(join(folder, 'incoming', key.replace('/', '')), 'half');
    await new DiskBlobStore(folder).delete(key);
    expect(await readdir(folder, { recursive: true })).toEqual(['incoming']);
  });

  it.each<[string, (folder: string) => Promise<unknown>]>([
    ['is gone', async () => undefined],
    ['is where a volume was mounted', mkdir],
  ])('does not report blobs as missing if the folder %s', async (_what, leave) => {
    const folder = join(await makeFolder(), 'mounted');
    let hasFiles = false;
    const open = () =>
      openBlobStore({ BLOB_URL: pathToFileURL(folder).href, DATA_DIR: '' }, () => Promise.resolve(hasFiles));
    const store = await open();
    const key = newBlobKey();
    await store.put(key, Buffer.from('bytes'));
    hasFiles = true;
    await rename(folder, `${folder} elsewhere`);
    await leave(folder);
    // In the running process, and after a restart.
    for (const opened of [store, await open()]) {
      await expect(opened.put(newBlobKey(), Buffer.from('more'))).rejects.toThrow(BlobStoreUnavailable);
      await expect(opened.get(key)).rejects.toThrow(BlobStoreUnavailable);
      await expect(opened.size(key)).rejects.toThrow(BlobStoreUnavailable);
    }
    await rm(folder, { recursive: true, force: true });
    await rename(`${folder} elsewhere`, folder);
    await store.put(newBlobKey(), Buffer.from('more'));
    expect(await store.size(key)).toBe(5);
  });

  it('accepts a restored folder once it has incoming/', async () => {
    const folder = await makeFolder();
    const key = newBlobKey();
    await new DiskBlobStore(folder).put(key, Buffer.from('bytes'));
    await rm(join(folder, 'incoming'), { recursive: true });
    const store = new DiskBlobStore(folder, () => Promise.resolve(false));
    await expect(store.put(newBlobKey(), Buffer.from('more'))).rejects.toThrow(BlobStoreUnavailable);
    expect(await store.size(key)).toBe(5);
    await mkdir(join(folder, 'incoming'));
    await store.put(newBlobKey(), Buffer.from('more'));
    await expect(store.size(newBlobKey())).rejects.toThrow(BlobMissing);
  });

  it('is unavailable if the storage fails', async () => {
    const folder = join(await makeFolder(), 'a file');
    await writeFile(folder, '');
    const store = new DiskBlobStore(folder);
    await expect(store.put(newBlobKey(), Buffer.alloc(1))).rejects.toThrow(BlobStoreUnavailable);
  });
});
