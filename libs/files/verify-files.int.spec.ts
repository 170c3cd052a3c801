import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, newId, openDatabase, type Database } from '#platform';
import { createTestDatabase, startS3Server, type S3Server, type TestDatabase } from '#testing';
import { BlobKeeper } from './blob-keeper.ts';
import { BlobStoreUnavailable, type BlobStore } from './blob-store.ts';
import { DiskBlobStore } from './disk-blob-store.ts';
import { FileStore } from './file-store.ts';
import { S3BlobStore } from './s3-blob-store.ts';
import { verifyFiles, type VerifyFilesOptions, type VerifyFilesReport } from './verify-files.ts';

// Real: PostgreSQL, a folder, an S3 server.

let testDatabase: TestDatabase;
let database: Database;
let folder: string;
let server: S3Server;
let blobs: BlobKeeper;
let files: FileStore;

beforeAll(async () => {
  server = await startS3Server();
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'spec', maxConnections: 4 });
  files = new FileStore(database.pool);
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-verify-files-'));
  open(new DiskBlobStore(folder));
});
afterEach(async () => {
  await database.pool.query('delete from files');
  await rm(folder, { recursive: true, force: true });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
  await server.stop();
});

function open(store: BlobStore): void {
  blobs = new BlobKeeper({ pool: database.pool, store, logger: createLogger('silent', 'spec') });
}

async function newFile(text: string): Promise<{ id: string; key: string }> {
  const { key, size, sha256 } = await blobs.put(Buffer.from(text), { maxBytes: 100, claimWithinMs: 60_000 });
  const id = newId();
  await database.pool.query(
    `insert into files (id, thread_id, kind, name, size, sha256, blob_key) values ($1, 'T', 'attachment', 'a', $2, $3, $4)`,
    [id, size, sha256, key],
  );
  return { id, key };
}

const verify = (options: VerifyFilesOptions = {}) => verifyFiles({ pool: database.pool, files, blobs }, options);
const told = ({ findings }: VerifyFilesReport) => findings.map(({ fileId, problem }) => [fileId, problem]);

describe.each([
  { name: 'a folder', store: () => new DiskBlobStore(folder) },
  { name: 'S3', store: () => new S3BlobStore(server.blobUrl()) },
])('in $name', ({ store }) => {
  beforeEach(() => open(store()));

  test('finds missing bytes, and notes them until they are back', async () => {
    const [whole, lost] = [await newFile('whole'), await newFile('lost')];
    await newFile('');
    expect(await verify()).toMatchObject({ files: 3, bytes: 9, found: 0, findings: [] });
    await store().delete(lost.key);
    const report = await verify();
    expect(told(report)).toEqual([[lost.id, 'missing']]);
    expect(report).toMatchObject({ found: 1, byProblem: { missing: 1 } });
    expect((await files.find(lost.id))?.lost_at).toMatch(/^20/);
    expect((await files.find(whole.id))?.lost_at).toBeNull();
    await store().put(lost.key, Buffer.from('lost'));
    expect((await verify({ hash: true })).found).toBe(0);
    expect((await files.find(lost.id))?.lost_at).toBeNull();
  });
});

test('finds wrong sizes, and wrong bytes only with `hash`', async () => {
  const [cut, changed] = [await newFile('0123456789'), await newFile('0123456789')];
  await writeFile(join(folder, cut.key), '01234');
  await writeFile(join(folder, changed.key), '012345678X');
  expect(told(await verify())).toEqual([[cut.id, 'size']]);
  expect(told(await verify({ hash: true }))).toEqual([
    [cut.id, 'size'],
    [changed.id, 'hash'],
  ]);
});

test('reports a file that cannot be read as unreadable, not as lost, and continues', async () => {
  const [stuck, lost] = [await newFile('stuck'), await newFile('lost')];
  const disk = new DiskBlobStore(folder);
  await disk.delete(lost.key);
  open({
    put: (...args) => disk.put(...args),
    get: (...args) => disk.get(...args),
    delete: (key) => disk.delete(key),
    size: (key) => (key === stuck.key ? Promise.reject(new BlobStoreUnavailable(new Error('EIO'))) : disk.size(key)),
  });
  expect(told(await verify())).toEqual([
    [stuck.id, 'unreadable'],
    [lost.id, 'missing'],
  ]);
  expect((await files.find(stuck.id))?.lost_at).toBeNull();
});

test.each([1, 20])('stops if the folder of %i files is gone, and notes no file as lost', async (count) => {
  for (let i = 0; i < count; i++) await newFile('x');
  await rename(folder, `${folder}-moved`);
  try {
    await expect(verify()).rejects.toThrow(BlobStoreUnavailable);
  } finally {
    await rename(`${folder}-moved`, folder);
  }
  const { rows } = await database.pool.query('select from files where lost_at is not null');
  expect(rows).toEqual([]);
});

test('continues where it stopped, over pages', async () => {
  const many = 1_100;
  const { key, size, sha256 } = await blobs.put(Buffer.from('shared'), { maxBytes: 100, claimWithinMs: 60_000 });
  await database.pool.query(
    `insert into files (id, thread_id, kind, name, size, sha256, blob_key)
     select 'F' || lpad(i::text, 5, '0'), 'T', 'attachment', 'a', $2, $3, $4 from generate_series(1, $1) i`,
    [many, size, sha256, key],
  );
  let last: string | null = null;
  const stop = new Error('stopped');
  const first = verify({
    onProgress: (report) => {
      last = report.lastFileId;
      if (report.files >= 600) throw stop;
    },
  });
  await expect(first).rejects.toBe(stop);
  // Needs several pages: a page has 500 files, and eight are read concurrently.
  expect(last).toBe('F00604');
  expect(await verify({ from: last! })).toMatchObject({ files: many - 604, lastFileId: 'F01100' });
  await new DiskBlobStore(folder).delete(key);
  const report = await verify();
  expect(report).toMatchObject({ files: many, found: many, byProblem: { missing: many } });
  expect(report.findings).toHaveLength(100);
});

test('reports nothing for a file that is deleted during its check', async () => {
  const gone = await newFile('gone');
  const disk = new DiskBlobStore(folder);
  open({
    put: (...args) => disk.put(...args),
    get: (...args) => disk.get(...args),
    delete: (key) => disk.delete(key),
    size: async (key) => {
      await database.pool.query('delete from files where id = $1', [gone.id]);
      await disk.delete(key);
      return disk.size(key);
    },
  });
  expect(await verify()).toMatchObject({ files: 1, found: 0 });
});
