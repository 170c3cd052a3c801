import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ulid } from 'ulid';
import type { Command } from '#domain';
import { absentThread, CommandHandler, ThreadStore } from '#event-store';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, spawnNode, type TestDatabase } from '#testing';

const createThread = (): Command => ({
  type: 'create_thread',
  agentId: ulid(),
  organizationId: ulid(),
  kind: 'cattle',
  userId: 'me',
  owner: { personId: ulid(), serviceTokenId: null },
});

/** `spool` as an operator runs it: the built program, its exit code and what it prints. */
describe('spool', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    database = await openDatabase({ url: testDatabase.url, applicationName: 'cli test', maxConnections: 2 });
    const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: 10_000 });
    for (let i = 0; i < 3; i++) {
      const threadId = ulid();
      await handler.handle({ threadId, commands: [createThread()], from: absentThread(threadId) });
    }
  });

  afterAll(async () => {
    await database.close();
    await testDatabase.drop();
  });

  /** On the database, without a service. */
  const spool = async (args: string[], env: Record<string, string> = { DATABASE_URL: testDatabase.url }) => {
    const process = spawnNode('dist/apps/cli/main.js', [...args, '--local'], env);
    const { code } = await process.exited;
    return { code, output: process.output() };
  };

  test('verify and rebuild find nothing in a healthy database, and exit with 0', async () => {
    expect(await spool(['verify'])).toEqual({
      code: 0,
      output: expect.stringContaining('3 streams, 3 events: 0 findings') as string,
    });
    expect(await spool(['projections', 'rebuild'])).toMatchObject({ code: 0 });
  });

  test('verify --files exits with 0 for whole files and with 1 for lost ones', async () => {
    const blobs = await mkdtemp(join(tmpdir(), 'spool-cli-blobs-'));
    const env = { DATABASE_URL: testDatabase.url, BLOB_URL: pathToFileURL(blobs).href };
    const key = `aa/${'0'.repeat(30)}`;
    const file = ulid();
    for (const name of ['aa', 'incoming']) await mkdir(join(blobs, name));
    await writeFile(join(blobs, key), 'hello');
    await database.pool.query(
      `insert into files (id, agent_id, kind, name, size, sha256, blob_key) values ($1, 'A', 'attachment', 'a', 5, $2, $3)`,
      [file, createHash('sha256').update('hello').digest('hex'), key],
    );
    try {
      const whole = await spool(['verify', '--files', '--hash'], env);
      expect(whole).toEqual({ code: 0, output: expect.stringContaining('1 files, 5 bytes: 0 findings') as string });
      await writeFile(join(blobs, key), 'jello');
      expect(await spool(['verify', '--files'], env)).toMatchObject({ code: 0 });
      const changed = await spool(['verify', '--files', '--hash'], env);
      expect(changed).toEqual({ code: 1, output: expect.stringContaining(`hash ${file} a draft`) as string });
      await rm(join(blobs, key));
      const lost = await spool(['verify', '--files'], env);
      expect(lost).toEqual({ code: 1, output: expect.stringContaining(`missing ${file} a draft`) as string });
    } finally {
      await database.pool.query('delete from files');
      await rm(blobs, { recursive: true });
    }
  });

  test('a planted difference is found by verify, mended by rebuild, and both exit with 1', async () => {
    await database.pool.query(`update thread_summaries set status = 'RUNNING'`);
    const found = await spool(['verify', '--json']);
    expect(found.code).toBe(1);
    expect(found.output).toContain('"I7"');
    const mended = await spool(['projections', 'rebuild']);
    expect(mended).toEqual({ code: 1, output: expect.stringContaining('3 differences repaired') as string });
    expect(await spool(['verify'])).toMatchObject({ code: 0 });
    expect(await spool(['projections', 'rebuild'])).toMatchObject({ code: 0 });
  });

  test('migrate may be run again', async () => {
    expect(await spool(['migrate'])).toEqual({ code: 0, output: 'The database was up to date already.\n' });
  });

  test('a rebuild that was killed goes on after the last Thread that it had told (F18)', async () => {
    // Three Threads of more than a page each; the lock on the last one stops the rebuild there.
    const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: 10_000 });
    const threadIds = [ulid(), ulid(), ulid()].sort();
    const attach: Command = { type: 'attach_file', fileId: ulid() };
    for (const threadId of threadIds) {
      const commands = [createThread(), ...Array.from({ length: 4_000 }, () => attach)];
      await handler.handle({ threadId, commands, from: absentThread(threadId) });
    }
    const broken = 'select thread_id from thread_summaries where user_id = $1 order by 1';
    await database.pool.query(`update thread_summaries set user_id = 'broken' where thread_id = any ($1)`, [threadIds]);
    const lock = await database.pool.connect();
    await lock.query('begin');
    await lock.query('select from streams where thread_id = $1 for update', threadIds.slice(2));
    const rebuild = spawnNode('dist/apps/cli/main.js', ['projections', 'rebuild', '--local'], {
      DATABASE_URL: testDatabase.url,
    });
    const [, last] = await rebuild.waitForLine(/last Thread: (\w+)/);
    await eventually(async () => (await database.pool.query(broken, ['broken'])).rowCount === 1, {
      what: 'two are mended',
    });
    await rebuild.kill('SIGKILL');
    await lock.query('rollback');
    lock.release();
    expect(await spool(['verify'])).toMatchObject({ code: 1 });
    const rest = await spool(['projections', 'rebuild', '--from', last ?? '']);
    expect(rest).toEqual({ code: 1, output: expect.stringContaining('1 differences repaired') as string });
    expect(await spool(['verify'])).toMatchObject({ code: 0 });
  });

  test('help shows how, with examples', async () => {
    const { code, output } = await spool(['--help']);
    expect(code).toBe(0);
    expect(output).toContain('$ spool verify --local');
    expect(await spool(['verfy'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('Did you mean verify?') as string,
    });
  });

  test('without a database, or with one that does not do, there is one readable line', async () => {
    const missing = new URL(testDatabase.url);
    missing.pathname = '/spool_no_such_database';
    const [none, away, absent, wrong] = await Promise.all([
      spool(['verify'], { DATA_DIR: '/nonexistent' }),
      spool(['verify'], { DATABASE_URL: 'postgres://nobody:secret@127.0.0.1:1/none' }),
      spool(['verify'], { DATABASE_URL: missing.href }),
      spool(['verify'], { DATABASE_URL: 'mysql://x' }),
    ]);
    expect(none).toEqual({ code: 5, output: expect.stringMatching(/^No database is configured [^\n]+\n$/) as string });
    expect(away).toEqual({ code: 5, output: 'The database none at 127.0.0.1:1 does not answer.\n' });
    expect(absent).toEqual({
      code: 5,
      output: expect.stringMatching(/^The database [^\n]+ refused the connection: [^\n]+\n$/) as string,
    });
    expect(wrong).toEqual({
      code: 2,
      output: expect.stringMatching(/^Wrong configuration: DATABASE_URL: [^\n]+\n$/) as string,
    });
  });

  test('beside a running standalone it uses the URL that this leaves in its data directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'spool-cli-'));
    await writeFile(join(directory, 'database.url'), `${testDatabase.url}\n`);
    expect(await spool(['verify'], { DATA_DIR: directory })).toMatchObject({ code: 0 });
    await rm(directory, { recursive: true });
  });
});
