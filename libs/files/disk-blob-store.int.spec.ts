import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlobStoreAway, newBlobKey } from './blob-store.ts';
import { describeBlobStore } from './blob-store.testsuite.ts';
import { DiskBlobStore } from './disk-blob-store.ts';

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

  it('deletes what a process that was killed in mid-put has left', async () => {
    const folder = await makeFolder();
    const key = newBlobKey();
    await mkdir(join(folder, 'incoming'));
    await writeFile(join(folder, 'incoming', key.replace('/', '')), 'half');
    await new DiskBlobStore(folder).delete(key);
    expect(await readdir(folder, { recursive: true })).toEqual(['incoming']);
  });

  it('says so when the storage fails', async () => {
    const folder = join(await makeFolder(), 'a file');
    await writeFile(folder, '');
    const store = new DiskBlobStore(folder);
    await expect(store.put(newBlobKey(), Buffer.alloc(1))).rejects.toThrow(BlobStoreAway);
  });
});
