import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endThreadsOf } from '#admin';
import { createAgent } from '#agents';
import { CommandHandler, ThreadStore } from '#event-store';
import { BlobKeeper, BlobStoreUnavailable, DiskBlobStore, FileStore, storeAttachment, type BlobStore } from '#files';
import { createLogger, newId, openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { Housekeeping } from './housekeeping.ts';

// Real: PostgreSQL, the disk.

let testDatabase: TestDatabase;
let database: Database;
let folder: string;

const claim = { maxBytes: 100, claimWithinMs: 60 * 60_000 };
const OWNER = { agentId: 'AGENT', personId: 'ADA', serviceTokenId: null, userId: null };
const settings = { DRAFT_AGE_MS: 3_600_000, IDEMPOTENCY_KEY_AGE_MS: 7_200_000, HOUSEKEEPING_MS: 1_234 };

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'spec', maxConnections: 4 });
  folder = await mkdtemp(join(tmpdir(), 'spool-housekeeping-'));
});

afterEach(async () => {
  await database.close();
  await testDatabase.drop();
  await rm(folder, { recursive: true });
});

function open(blobStore: BlobStore = new DiskBlobStore(folder)) {
  const { pool } = database;
  const files = new FileStore(pool);
  const blobs = new BlobKeeper({ pool, store: blobStore, logger: createLogger('silent', 'spec') });
  const store = new ThreadStore(pool);
  const handler = new CommandHandler({ store, leaseMs: 10_000 });
  const housekeeping = new Housekeeping({ pool, store, handler, files, blobs, settings });
  const tidy = () => housekeeping.tidy(new AbortController().signal);
  const newDraft = async (key: string): Promise<string> => {
    const file = await storeAttachment(blobs, { name: 'a', bytes: Buffer.from('draft'), maxBytes: 10 });
    const answer = { tokenId: 'token', key, fingerprint: '', status: 201 };
    await files.storeDraft({
      file,
      owner: OWNER,
      organizationId: 'ORGANIZATION',
      maxDrafts: 10,
      answer,
      render: () => 'body',
    });
    return file.id;
  };
  return { tidy, newDraft, blobs, files, handler };
}

const age = (table: string, column: string, interval: string, where = 'true') =>
  database.pool.query(`update ${table} set ${column} = ${column} - $1::interval where ${where}`, [interval]);

const blobsOnDisk = async () => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
};

const keys = async () => {
  const { rows } = await database.pool.query<{ key: string }>('select key from idempotency_keys order by key');
  return rows.map(({ key }) => key);
};

test('deletes expired drafts with their bytes and keeps the others', async () => {
  const { tidy, newDraft, files } = open();
  const [old, young] = [await newDraft('old'), await newDraft('young')];
  await age('files', 'created_at', '61 minutes', `id = '${old}'`);
  expect(await tidy()).toBe(1_234);
  expect([await files.find(old), (await files.find(young))?.id]).toEqual([null, young]);
  expect(await blobsOnDisk()).toBe(1);
});

test('counts files that are older than quotas only once', async () => {
  const { tidy, newDraft } = open();
  const { pool } = database;
  const ids = [await newDraft('one'), await newDraft('two')];
  await pool.query(`insert into organizations (id, name) values ('O', 'O')`);
  await pool.query(`insert into people (id, name) values ('P', 'P')`);
  await pool.query(
    `insert into agents (id, organization_id, owner_person_id, name, kind, access) values ($1, 'O', 'P', 'A', 'cattle', 'organization')`,
    [OWNER.agentId],
  );
  const owner = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'spec', maxConnections: 1 });
  await owner.pool.query('alter table files disable trigger files_organization');
  await owner.close();
  await pool.query(`update files set organization_id = null`);
  await pool.query('delete from file_usage');
  for (let i = 0; i < 2; i++) {
    await tidy();
    const { rows } = await pool.query('select files::integer, bytes::integer from file_usage');
    expect(rows).toEqual([{ files: ids.length, bytes: 10 }]);
  }
});

test('keeps an attached file regardless of its age', async () => {
  const { tidy, newDraft, files } = open();
  const id = await newDraft('key');
  await database.pool.query(`update files set thread_id = 'THREAD' where id = $1`, [id]);
  await age('files', 'created_at', '10 days');
  await tidy();
  expect((await files.find(id))?.id).toBe(id);
  expect(await blobsOnDisk()).toBe(1);
});

test('deletes expired idempotency keys and keeps the others', async () => {
  const { tidy, newDraft } = open();
  await newDraft('old');
  await newDraft('young');
  await age('idempotency_keys', 'created_at', '121 minutes', `key = 'old'`);
  await tidy();
  expect(await keys()).toEqual(['young']);
});

test('deletes unclaimed bytes when they are due, and not before', async () => {
  const { tidy, blobs } = open();
  const { key } = await blobs.put(Buffer.from('never a file'), claim);
  await tidy();
  expect(await blobsOnDisk()).toBe(1);
  await age('unclaimed_blobs', 'due_at', '61 minutes');
  await tidy();
  expect(await blobsOnDisk()).toBe(0);
  await expect(blobs.get(key)).rejects.toThrow();
});

test('deletes ended rate limit windows and keeps the others', async () => {
  await database.pool.query(
    `insert into rate_limits values ('old', 1, now() - interval '1 s'), ('new', 1, now() + interval '1 minute')`,
  );
  await open().tidy();
  const { rows } = await database.pool.query('select key from rate_limits');
  expect(rows).toEqual([{ key: 'new' }]);
});

test('deletes ended operator sessions and keeps the others', async () => {
  await database.pool.query(`
    insert into tokens (id, kind, hash, name) values ('TOKEN', 'operator', 'h', 'n');
    insert into operator_sessions (hash, token_id, token_hash, last_used_at, expires_at) values
      ('too old', 'TOKEN', 'h', now(), now()),
      ('not used', 'TOKEN', 'h', now() - interval '1 hour', now() + interval '1 hour'),
      ('used', 'TOKEN', 'h', now() - interval '59 minutes', now() + interval '1 hour')`);
  await open().tidy();
  const { rows } = await database.pool.query(`select encode(hash, 'escape') as hash from operator_sessions`);
  expect(rows).toEqual([{ hash: 'used' }]);
});

describe('Threads of a deleted agent', () => {
  const organizationId = newId();
  let agentId: string;
  beforeEach(async () => {
    const { pool } = database;
    await pool.query(`insert into organizations (id, name) values ($1, 'Acme')`, [organizationId]);
    agentId = await createAgent(pool, { organizationId, manifest: { name: 'echo', harness: { name: 'echo' } } });
  });

  const remove = (interval: string) =>
    database.pool.query('update agents set deleted_at = now() - $2::interval where id = $1', [agentId, interval]);
  const newThread = async (handler: CommandHandler, of = agentId): Promise<string> => {
    const threadId = newId();
    const owner = { personId: 'ADA', serviceTokenId: null };
    const thread = { agentId: of, organizationId, kind: 'cattle', userId: 'u', owner } as const;
    await handler.handle({ threadId, commands: [{ type: 'create_thread', ...thread }] });
    return threadId;
  };
  const statuses = async () => {
    const { rows } = await database.pool.query<{ status: string }>(
      'select status from thread_summaries order by thread_id',
    );
    return rows.map(({ status }) => status);
  };
  const isDone = async () => {
    const { rows } = await database.pool.query('select from agents where threads_ended_at is not null');
    return rows.length === 1;
  };

  test('are ended if the deletion had no time for them or they were created after it', async () => {
    const { tidy, handler } = open();
    const { pool } = database;
    for (let i = 0; i < 3; i++) await newThread(handler);
    await newThread(handler, 'ANOTHER');
    await remove('1 second');
    // The result of a deletion without any time.
    expect(await endThreadsOf(pool, handler, agentId, performance.now())).toEqual({ ended: 0, complete: false });
    expect(await statuses()).toEqual(['IDLE', 'IDLE', 'IDLE', 'IDLE']);
    // One round may be too short on a machine that pauses.
    const areEnded = async () => (
      await tidy(),
      (await statuses()).slice(0, 3).every((status) => status === 'TERMINATED')
    );
    await eventually(areEnded, { what: 'they are ended' });
    expect((await statuses())[3]).toBe('IDLE');
    // A process may still have cached the agent.
    expect(await isDone()).toBe(false);
    await newThread(handler);
    await remove('2 minutes');
    await eventually(async () => (await tidy(), await isDone()), { what: 'all is done' });
    expect((await statuses()).at(-1)).toBe('TERMINATED');
  });

  test('that cannot be ended do not block other Threads or other chores', async () => {
    const { tidy, handler } = open();
    const [stuck] = [await newThread(handler), await newThread(handler)];
    // The Thread has a summary without a stream, so it cannot be ended.
    await database.pool.query('select delete_stream($1, 1)', [stuck]);
    await remove('2 minutes');
    expect(await tidy()).toBe(1_234);
    expect(await statuses()).toEqual(['IDLE', 'TERMINATED']);
    expect(await isDone()).toBe(false);
  });
});

test('keeps bytes for a later round while the blob store is unavailable, and deletes everything else', async () => {
  const { blobs, newDraft } = open();
  await newDraft('old');
  await blobs.put(Buffer.from('never a file'), claim);
  await age('unclaimed_blobs', 'due_at', '61 minutes');
  await age('idempotency_keys', 'created_at', '121 minutes');
  const disk = new DiskBlobStore(folder);
  const failing: BlobStore = {
    put: (...args) => disk.put(...args),
    get: (...args) => disk.get(...args),
    size: (key) => disk.size(key),
    delete: () => Promise.reject(new BlobStoreUnavailable(new Error('unavailable'))),
  };
  await expect(open(failing).tidy()).rejects.toThrow(BlobStoreUnavailable);
  expect(await keys()).toEqual([]);
  expect(await blobsOnDisk()).toBe(2);
  // Failed bytes are postponed, so that others are deleted first.
  await open().tidy();
  expect(await blobsOnDisk()).toBe(2);
  await age('unclaimed_blobs', 'due_at', '11 minutes');
  await open().tidy();
  expect(await blobsOnDisk()).toBe(1);
});

test('deletes other bytes while some cannot be deleted', async () => {
  const { blobs } = open();
  const stuck = await blobs.put(Buffer.from('stuck'), claim);
  await blobs.put(Buffer.from('others'), claim);
  await age('unclaimed_blobs', 'due_at', '61 minutes');
  await age('unclaimed_blobs', 'due_at', '1 minute', `blob_key = '${stuck.key}'`);
  const disk = new DiskBlobStore(folder);
  const failing: BlobStore = {
    put: (...args) => disk.put(...args),
    get: (...args) => disk.get(...args),
    size: (key) => disk.size(key),
    delete: async (key) => {
      if (key === stuck.key) throw new BlobStoreUnavailable(new Error('stuck'));
      await disk.delete(key);
    },
  };
  await expect(open(failing).tidy()).rejects.toThrow(BlobStoreUnavailable);
  expect(await open(failing).tidy()).toBe(1_234);
  expect(await blobsOnDisk()).toBe(1);
});

test('deletes old bulk actions with their Runs, and plans that were not started', async () => {
  const { tidy } = open();
  const ages = [
    ['RUNNING', 'running', '40 days', null],
    ['ENDED', 'done', '31 days', '31 days'],
    ['RECENT', 'stopped', '29 days', '29 days'],
    ['PLANNED', 'planned', '25 hours', null],
    ['NEW', 'planned', '23 hours', null],
  ] as const;
  for (const [id, state, began, ended] of ages) {
    await database.pool.query(
      `insert into bulk_actions (id, action, state, filter, touches, planned_at, started_at, ended_at)
       values ($1, 'retry', $2, '{}', '{}', now() - $3::interval, case when $2 <> 'planned' then now() - $3::interval end,
               now() - $4::interval)`,
      [id, state, began, ended],
    );
    await database.pool.query(`insert into bulk_action_runs (action_id, run_id, thread_id) values ($1, 'R', 'T')`, [
      id,
    ]);
  }
  await tidy();
  const { rows } = await database.pool.query<{ action_id: string }>(
    'select action_id from bulk_action_runs order by 1',
  );
  expect(rows.map(({ action_id }) => action_id)).toEqual(['NEW', 'RECENT', 'RUNNING']);
});
