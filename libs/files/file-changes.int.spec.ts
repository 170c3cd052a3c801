import { ulid } from 'ulid';
import type { Command } from '#domain';
import {
  addMessage,
  answerUnder,
  apply,
  blockedBackends,
  idleThread,
  makeAppend,
  openFixture,
  readAll,
  record,
  runningThread,
  type Fixture,
} from '../event-store/store.testing.ts';
import { nameOf, type LoadedThread } from '#event-store';
import type { DraftOwner, FileChanges, FileRefusal } from './file-changes.ts';
import { FileStore } from './file-store.ts';
import type { PreparedFile } from './store-file.ts';

// Real: PostgreSQL.

let on: Fixture;
let files: FileStore;

beforeEach(async () => {
  on = await openFixture();
  files = new FileStore(on.pool);
});

afterEach(() => on.close());

const OWNER: DraftOwner = { agentId: 'AGENT', personId: 'ADA', serviceTokenId: null, userId: null };
const DAY_MS = 86_400_000;

/** Returns a file whose bytes are stored. */
async function newFile(kind: PreparedFile['kind'] = 'attachment'): Promise<PreparedFile> {
  const blobKey = ulid();
  await on.admin.query(`insert into unclaimed_blobs values ($1, now() + interval '1 hour')`, [blobKey]);
  return {
    id: ulid(),
    run_id: null,
    kind,
    name: `it's.txt`,
    mime_type: null,
    size: 3,
    sha256: 'sum',
    blob_key: blobKey,
  };
}

async function newDraft({ age = '0 s', ...owner }: { age?: string } & Partial<DraftOwner> = {}): Promise<string> {
  const id = ulid();
  const { agentId, personId, serviceTokenId } = { ...OWNER, ...owner };
  await on.admin.query(
    `insert into files (id, kind, name, size, sha256, blob_key, agent_id, owner_person_id, owner_service_token_id, created_at)
     values ($1, 'attachment', 'draft', 1, 'sum', $1, $2, $3, $4, now() - $5::interval)`,
    [id, agentId, personId, serviceTokenId, age],
  );
  return id;
}

const claim = (...fileIds: string[]): FileChanges => ({ claimed: { owner: OWNER, fileIds, maxAgeMs: DAY_MS } });

async function attach(thread: LoadedThread, changes: FileChanges, key = 'key') {
  const commands: Command[] = [{ type: 'attach_file', fileId: 'F' }];
  const hook = () => files.inAppend(changes);
  return on.handler.handle({ threadId: thread.threadId, commands, hook, answer: () => answerUnder(key) });
}

async function filesOf(threadId: string): Promise<string[]> {
  const { rows } = await on.admin.query<{ id: string }>('select id from files where thread_id = $1', [threadId]);
  return rows.map(({ id }) => id).sort();
}

async function unclaimed(): Promise<string[]> {
  const { rows } = await on.admin.query<{ key: string }>('select blob_key as key from unclaimed_blobs');
  return rows.map(({ key }) => key).sort();
}

/** Not final: files change after the append, so an earlier request of it may still commit. */
const refused = (reason: FileRefusal) => ({ outcome: 'refused', reason, isFinal: false });

/** Expects no new event, key or file. */
async function expectUnchanged(thread: LoadedThread): Promise<void> {
  expect((await on.store.load(thread.threadId))?.version).toBe(thread.version);
  expect(await on.store.findKey('token', 'key')).toBeNull();
  expect(await filesOf(thread.threadId)).toEqual([]);
}

describe('a file in an append', () => {
  test('is stored with it, and the sweeper cannot delete its bytes', async () => {
    const thread = await idleThread(on);
    const file = await newFile();
    expect(await attach(thread, { added: [file] })).toMatchObject({ outcome: 'appended' });
    expect(await filesOf(thread.threadId)).toEqual([file.id]);
    expect(await unclaimed()).toEqual([]);
  });

  test('is not stored without it', async () => {
    const { thread, fence } = await runningThread(on);
    const commands = [record(fence)];
    const append = await makeAppend({ threadId: thread.threadId, from: thread, fence, commands });
    const file = await newFile('artifact');
    const hook = files.inAppend({ added: [file] });
    const late = { ...append, before: { ...thread, version: thread.version + 5 }, hook };
    expect(await on.store.append(late)).toEqual({ outcome: 'conflict' });
    expect(await filesOf(thread.threadId)).toEqual([]);
    expect(await on.store.append({ ...append, hook })).toEqual({ outcome: 'appended' });
    expect(await filesOf(thread.threadId)).toEqual([file.id]);
  });

  test('is refused with the whole append if the sweeper was first', async () => {
    const thread = await idleThread(on);
    const file = await newFile();
    await on.admin.query('delete from unclaimed_blobs');
    expect(await attach(thread, { added: [await newFile(), file] })).toEqual(refused('files_refused'));
    await expectUnchanged(thread);
  });
});

describe('a draft', () => {
  test('is attached once, by the append that claims it', async () => {
    const thread = await idleThread(on);
    const [a, b] = [await newDraft(), await newDraft()];
    expect(await attach(thread, claim(a, b))).toMatchObject({ outcome: 'appended' });
    expect(await filesOf(thread.threadId)).toEqual([a, b].sort());
    const other = await idleThread(on);
    const again = { threadId: other.threadId, commands: [addMessage()], hook: () => files.inAppend(claim(a)) };
    expect(await on.handler.handle(again)).toEqual(refused('files_refused'));
    expect((await on.store.load(other.threadId))?.version).toBe(other.version);
  });

  test.each([
    ['somebody else’s', { personId: 'BOB' }],
    ['another agent’s', { agentId: 'OTHER' }],
    ['too old', { age: '25 h' }],
  ])('that is %s is refused, with a valid draft beside it', async (_, more) => {
    const thread = await idleThread(on);
    const [good, bad] = [await newDraft(), await newDraft(more)];
    expect(await attach(thread, claim(good, bad))).toEqual(refused('files_refused'));
    await expectUnchanged(thread);
  });

  test('of a service token can be attached by that token', async () => {
    const thread = await idleThread(on);
    const owner = { personId: null, serviceTokenId: 'SVC' };
    const draft = await newDraft(owner);
    const claimed = { owner: { ...OWNER, ...owner }, fileIds: [draft], maxAgeMs: DAY_MS };
    expect(await attach(thread, { claimed })).toMatchObject({ outcome: 'appended' });
  });

  test('goes to one of two Threads that claim it concurrently', async () => {
    const threads = [await idleThread(on), await idleThread(on)];
    const draft = await newDraft();
    const both = threads.map(({ threadId }) =>
      on.handler.handle({ threadId, commands: [addMessage()], hook: () => files.inAppend(claim(draft)) }),
    );
    const outcomes = (await Promise.all(both)).map(nameOf);
    expect(outcomes.sort()).toEqual(['appended', 'files_refused']);
  });
});

describe('the number of attachments of a Thread', () => {
  test('is limited, with those of the append and without artifacts', async () => {
    const thread = await idleThread(on);
    const added = [await newFile(), await newFile(), await newFile('artifact')];
    await attach(thread, { added, maxAttachments: 2 });
    const oneMore = { ...claim(await newDraft()), maxAttachments: 2 };
    expect(await attach(thread, oneMore, 'one more')).toEqual(refused('files_full'));
    const instead = { ...oneMore, removed: [added[0]!.id] };
    expect(await attach(thread, instead, 'instead')).toMatchObject({ outcome: 'appended' });
  });
});

describe('the number of artifacts of a Thread', () => {
  test('is limited, without those in the folder', async () => {
    const thread = await idleThread(on);
    const change = { does: 'add', path: 'a.txt', basedOn: null, file: await newFile('artifact') } as const;
    const folder = { folderId: thread.threadId, changes: [change], maxFiles: 9, maxBytes: 9 };
    await attach(thread, { added: [await newFile('artifact'), await newFile()], folder, maxArtifacts: 1 });
    const oneMore = { added: [await newFile('artifact')], maxArtifacts: 1 };
    expect(await attach(thread, oneMore, 'one more')).toEqual(refused('artifacts_full'));
    expect(await attach(thread, { ...oneMore, added: [await newFile()] }, 'another')).toMatchObject({
      outcome: 'appended',
    });
  });
});

describe('a file that is removed', () => {
  test('leaves its bytes to the sweeper, and empties the answer of its upload', async () => {
    const thread = await idleThread(on);
    const file = await newFile();
    await attach(thread, { added: [file] });
    await on.admin.query(`insert into idempotency_keys (token_id, key, fingerprint, file_id, status, body)
                          values ('token', 'upload', '', '${file.id}', 201, 'a name')`);
    const commands: Command[] = [{ type: 'delete_file', fileId: file.id }];
    const request = { threadId: thread.threadId, commands, hook: () => files.inAppend({ removed: [file.id] }) };
    await apply(on.handler, request);
    expect(await filesOf(thread.threadId)).toEqual([]);
    expect(await unclaimed()).toEqual([file.blob_key]);
    expect((await on.store.findKey('token', 'upload'))?.body).toBe('');
    expect(await on.handler.handle(request)).toEqual(refused('files_refused'));
  });

  test('stays, and nothing is appended, if the removal names other bytes', async () => {
    const thread = await idleThread(on);
    const file = await newFile();
    await attach(thread, { added: [file] });
    const remove = (removedSha256: string) =>
      on.handler.handle({
        threadId: thread.threadId,
        commands: [{ type: 'delete_file', fileId: file.id }],
        hook: () => files.inAppend({ removed: [file.id], removedSha256 }),
      });
    const before = await readAll(on, thread.threadId);
    expect(await remove('0'.repeat(64))).toEqual(refused('files_refused'));
    expect(await readAll(on, thread.threadId)).toEqual(before);
    expect(await remove(file.sha256)).toMatchObject({ outcome: 'appended' });
    expect(await filesOf(thread.threadId)).toEqual([]);
  });
});

describe('a Thread that is deleted', () => {
  const TABLES = ['events', 'streams', 'thread_summaries', 'run_summaries', 'run_work', 'files'];

  test('leaves only bytes for the sweeper and keys without answers, and keeps other Threads', async () => {
    const other = await runningThread(on);
    const { thread, fence } = await runningThread(on);
    const file = await newFile();
    await attach(thread, { added: [file] });
    expect(await on.store.deleteThread(thread.threadId)).toMatchObject({ blobKeys: [file.blob_key] });
    for (const table of TABLES) {
      const { rowCount } = await on.admin.query(`select from ${table} where thread_id = $1`, [thread.threadId]);
      expect([table, rowCount]).toEqual([table, 0]);
    }
    expect(await unclaimed()).toEqual([file.blob_key]);
    expect(await on.store.findKey('token', 'key')).toMatchObject({ threadId: thread.threadId, body: '' });
    expect((await readAll(on, other.thread.threadId)).length).toBeGreaterThan(0);
    const late = { threadId: thread.threadId, from: thread, fence, commands: [record(fence)] };
    expect(await on.handler.handle(late)).toMatchObject({ rejection: { rejected: 'thread_missing' } });
    expect(await on.store.deleteThread(thread.threadId)).toBeNull();
  });

  test('is deleted with the events of a concurrent append', async () => {
    const { thread } = await runningThread(on);
    await on.admin.query('begin');
    await on.admin.query('update streams set version = version + 1 where thread_id = $1', [thread.threadId]);
    const deleted = on.store.deleteThread(thread.threadId);
    await blockedBackends(on.admin, 1);
    await on.admin.query(
      `insert into events (thread_id, version, id, type, schema_version, data, public, occurred_at)
       values ($1, $2, $3, 'usage.recorded', 1, '{}', false, now())`,
      [thread.threadId, thread.version + 1, ulid()],
    );
    await on.admin.query('commit');
    expect(await deleted).toEqual({ version: thread.version + 1, blobKeys: [] });
    expect(await readAll(on, thread.threadId)).toEqual([]);
  });
});
