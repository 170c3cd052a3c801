import { appendUntilStopped, openFixture, seedThread, seedThreads, STORIES, type Fixture } from './threads.testing.ts';
import { rebuild } from './rebuild.ts';
import { verify } from './verify.ts';
import { completed, TABLES, vandalOf, violationsOn } from './violations.testing.ts';

// Real: PostgreSQL, appends by CommandHandler. SQL does what no append can do.

let on: Fixture;

beforeAll(async () => {
  on = await openFixture();
  await seedThreads(on);
});

afterAll(async () => {
  await on.close();
});

const { sql, append } = vandalOf(() => on);

describe('verify finds', () => {
  test.each(violationsOn(() => on))('%s (in a Thread that is %s): %s', async (_, story, invariants, violate) => {
    const thread = await seedThread(on, story);
    await violate(thread);
    const { findings, found } = await verify(on.pool);
    for (const table of TABLES) await on.admin.query(`delete from ${table} where thread_id = $1`, [thread.threadId]);
    expect([...new Set(findings.map(({ invariant }) => invariant))].sort()).toEqual(invariants);
    expect(new Set(findings.map(({ threadId }) => threadId))).toEqual(new Set([thread.threadId]));
    expect(found).toBe(findings.length);
  });

  test('events and rows of a partly deleted Thread', async () => {
    const left: string[] = [];
    const addFile = `insert into files (id, thread_id, kind, name, size, sha256, blob_key)
                     values ($1, $1, 'artifact', '', 0, '', '')`;
    for (const table of ['events', 'thread_summaries', 'run_summaries', 'run_work', 'files']) {
      const { threadId } = await seedThread(on, 'running');
      await sql(addFile, threadId);
      for (const other of TABLES) if (other !== table) await sql(`delete from ${other} where thread_id = $1`, threadId);
      left.push(threadId);
    }
    const { findings } = await verify(on.pool);
    for (const table of TABLES) await on.admin.query(`delete from ${table} where thread_id = any ($1)`, [left]);
    expect(new Set(findings.map(({ threadId }) => threadId))).toEqual(new Set(left));
  });

  test('wrong file counters until rebuild corrects them', async () => {
    const { threadId } = await seedThread(on, 'running');
    const addFile = `insert into files (id, thread_id, kind, name, size, sha256, blob_key) values ($1, $2, 'artifact', '', 5, '', '')`;
    await on.admin.query(addFile, ['F1', threadId]);
    expect((await verify(on.pool)).found).toBe(0);
    const organization = 'select organization_id from thread_summaries where thread_id = $1';
    await sql(`update file_usage set bytes = bytes + 1, files = 7 where organization_id = (${organization})`, threadId);
    await sql(`insert into file_usage values ('GONE', 1, 1)`);
    const { findings } = await verify(on.pool);
    expect(findings).toEqual([
      { threadId: '', invariant: 'usage', message: expect.stringContaining('7 files with 6 bytes') as string },
      { threadId: '', invariant: 'usage', message: expect.stringContaining('Organization GONE: 1 files') as string },
    ]);
    expect(await rebuild(on.pool)).toMatchObject({ differences: 2, byTable: { file_usage: 2 } });
    expect((await verify(on.pool)).found).toBe(0);
    await on.admin.query(`delete from files where id = 'F1'`);
    for (const table of TABLES) await on.admin.query(`delete from ${table} where thread_id = $1`, [threadId]);
    expect((await verify(on.pool)).found).toBe(0);
  });

  test('more violations than `maxFindings`, counts all and keeps `maxFindings`', async () => {
    await sql(`update thread_summaries set title = 'broken'`);
    const { found, findings, byInvariant } = await verify(on.pool, { maxFindings: 3 });
    await sql('update thread_summaries t set title = case when last_run_id is not null then $1 end', 'Hello');
    expect({ found, kept: findings.length, byInvariant }).toEqual({
      found: STORIES.length,
      kept: 3,
      byInvariant: { I7: STORIES.length },
    });
  });
});

describe('verify finds nothing', () => {
  test('in correct Threads, and reports how many it checked', async () => {
    const { rows } = await on.admin.query<{ count: number }>('select count(*)::integer as count from events');
    const report = await verify(on.pool);
    expect(report).toMatchObject({ streams: STORIES.length, events: rows[0]?.count, found: 0, findings: [] });
  });

  test.each([1, 7, 1_000])('in pages of %d events, and reports progress after each', async (pageEvents) => {
    const told: (string | null)[] = [];
    await verify(on.pool, { pageEvents, onProgress: ({ lastThreadId }) => void told.push(lastThreadId) });
    expect(told).toEqual([...told].sort());
    const { rows } = await on.admin.query<{ last: string }>('select max(thread_id) as last from streams');
    expect(told.at(-1)).toBe(rows[0]?.last);
  });

  test('in Threads up to `from`', async () => {
    const thread = await seedThread(on, 'empty');
    await sql(`update thread_summaries set title = 'broken' where thread_id = $1`, thread.threadId);
    expect((await verify(on.pool, { from: thread.threadId })).findings).toEqual([]);
    expect((await verify(on.pool)).found).toBe(1);
    await sql(`update thread_summaries set title = null where thread_id = $1`, thread.threadId);
  });

  test('in events of unknown types, which may move a Run', async () => {
    const { threadId, runId } = await seedThread(on, 'running');
    await append(threadId, 'thread.renamed', null, null, { title: 'T' });
    await append(threadId, 'run.paused', runId, 1);
    await append(threadId, 'run.waiting', runId, 1, { requests: [] });
    await append(threadId, 'run.completed', runId, 1, completed);
    await append(threadId, 'agent.dreamt', runId, 1, 'not even an object');
    expect(await verify(on.pool)).toMatchObject({ unknownEvents: 3, findings: [] });
    for (const table of TABLES) await on.admin.query(`delete from ${table} where thread_id = $1`, [threadId]);
  });

  test('in a delayed Run that the dispatcher made ready', async () => {
    const { threadId, runId } = await seedThread(on, 'to be retried');
    await sql(`update run_work set state = 'ready', since = now(), due_at = now() where run_id = $1`, runId);
    expect((await verify(on.pool)).findings).toEqual([]);
    for (const table of TABLES) await on.admin.query(`delete from ${table} where thread_id = $1`, [threadId]);
  });

  test('while others append, and while a transaction is open (F19)', async () => {
    await on.admin.query('begin');
    await on.admin.query(`insert into queue_controls values ('open', null)`);
    const stop = appendUntilStopped(on, 4);
    for (let i = 0; i < 10; i++) expect((await verify(on.pool, { pageEvents: 100 })).findings).toEqual([]);
    expect(await stop()).toBeGreaterThan(10);
    await on.admin.query('rollback');
    expect((await verify(on.pool)).findings).toEqual([]);
  });
});
