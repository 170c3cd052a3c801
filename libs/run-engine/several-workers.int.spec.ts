import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskBlobStore, openBlobStore, type BlobStore } from '#files';
import { startS3Server } from '#testing';
import { makeWorld } from './engine.testing.ts';
import { anotherRunThat, folderOf, remove, runThat, write } from './folder.testing.ts';
import { scripted } from './scripted-harness.testing.ts';

// Real: PostgreSQL, an S3 server in this process or a folder, and a worker for each Run.

interface Storage {
  blobStore: BlobStore;
  stop: () => Promise<void>;
}

const STORAGES: [string, () => Promise<Storage>][] = [
  [
    'an S3 server',
    async () => {
      const server = await startS3Server();
      const blobStore = await openBlobStore({ BLOB_URL: server.blobUrl(), DATA_DIR: '' }, () => Promise.resolve(true));
      return { blobStore, stop: () => server.stop() };
    },
  ],
  [
    'a shared folder',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'spool-shared-'));
      return { blobStore: new DiskBlobStore(folder), stop: () => rm(folder, { recursive: true }) };
    },
  ],
];

describe.each(STORAGES)('several workers with their bytes in %s', (_, make) => {
  it('work in one folder: another worker reads, replaces and removes the files of one', async () => {
    const { blobStore, stop } = await make();
    const world = await makeWorld({ blobStore });
    try {
      const said = await world.say('x', scripted);
      await runThat(world, said, write('docs/a.txt', 'by the first'));
      expect(await folderOf(world, said)).toEqual({ 'docs/a.txt': 'by the first' });
      await anotherRunThat(world, said, write('docs/a.txt', 'by another'));
      expect(await folderOf(world, said)).toEqual({ 'docs/a.txt': 'by another' });
      await anotherRunThat(world, said, remove('docs/a.txt'));
      expect(await folderOf(world, said)).toEqual({});
    } finally {
      await world.close();
      await stop();
    }
  });

  it('give a pet’s folder to all its Threads', async () => {
    const { blobStore, stop } = await make();
    const world = await makeWorld({ blobStore });
    try {
      const agent = await world.makeAgent(scripted);
      const [first, second] = [await world.sayTo(agent, 'x', 'pet'), await world.sayTo(agent, 'y', 'pet')];
      await runThat(world, first, write('a.txt', 'by the first'));
      await runThat(world, second, write('b.txt', 'by the second'));
      expect(await folderOf(world, first)).toEqual({ 'a.txt': 'by the first', 'b.txt': 'by the second' });
    } finally {
      await world.close();
      await stop();
    }
  });
});
