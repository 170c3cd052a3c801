import { ulid } from 'ulid';
import { ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import { eventually } from '#testing';
import { rebuild, type RebuildReport } from './rebuild.ts';
import { RUN_COLUMNS } from './run-summary.ts';
import { THREAD_COLUMNS } from './thread-summary.ts';
import {
  apply,
  appendUntilStopped,
  message,
  newRun,
  openFixture,
  seedThread,
  seedThreads,
  STORIES,
  type Fixture,
} from './threads.testing.ts';
import { verify } from './verify.ts';

// Real: PostgreSQL, appends by CommandHandler. Rows are broken by SQL.

let on: Fixture;

beforeAll(async () => {
  on = await openFixture();
  await seedThreads(on);
});

afterAll(async () => {
  await on.close();
});

afterEach(async () => {
  expect((await verify(on.pool)).findings).toEqual([]);
});

const TABLES = ['streams', 'thread_summaries', 'run_summaries'] as const;

/** Returns all rows of the three tables. */
async function dump(): Promise<string[]> {
  const all: string[] = [];
  for (const table of TABLES) {
    const { rows } = await on.admin.query<{ row: string }>(`select t::text as row from ${table} t order by 1`);
    all.push(...rows.map(({ row }) => `${table} ${row}`));
  }
  return all;
}

const columns = {
  streams: ['version', 'last_event_id', 'last_occurred_at', 'state'],
  thread_summaries: withoutKey(THREAD_COLUMNS),
  run_summaries: withoutKey(RUN_COLUMNS),
};

/** Returns the names of all columns but the first, the primary key. */
function withoutKey(all: object): string[] {
  return Object.keys(all).slice(1);
}

/** Returns another value of the type. */
const OTHER: Record<string, (column: string) => string> = {
  integer: (column) => `${column} + 1`,
  text: () => `'other'`,
  boolean: (column) => `not ${column}`,
  jsonb: () => `'{"other": true}'`,
  'timestamp with time zone': (column) => `coalesce(${column}, now()) + interval '1 s'`,
};

test('the broken columns are all columns except the keys', async () => {
  const { rows } = await on.admin.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
     where table_schema = 'public' and table_name = any ($1) order by 1`,
    [TABLES],
  );
  const keys = ['streams.thread_id', 'thread_summaries.thread_id', 'run_summaries.run_id'];
  const listed = TABLES.flatMap((table) => columns[table].map((column) => `${table}.${column}`));
  expect(rows.map(({ name }) => name)).toEqual([...keys, ...listed].sort());
});

test('changes nothing if no row differs', async () => {
  const before = await dump();
  const { rows } = await on.admin.query<{ count: number }>('select count(*)::integer as count from events');
  const report = await rebuild(on.pool);
  expect(report).toMatchObject({ streams: STORIES.length, events: rows[0]?.count, differences: 0, left: 0 });
  expect(await dump()).toEqual(before);
});

const everyColumn = TABLES.flatMap((table) => columns[table].map((column) => ({ table, column })));

test.each(everyColumn)('repairs $column of $table in every row', async ({ table, column }) => {
  const before = await dump();
  const { rows } = await on.admin.query<{ type: string }>(
    'select data_type as type from information_schema.columns where table_name = $1 and column_name = $2',
    [table, column],
  );
  const { rowCount } = await on.admin.query(`update ${table} set ${column} = ${OTHER[rows[0]?.type ?? '']?.(column)}`);
  expect(await dump()).not.toEqual(before);
  const report = await rebuild(on.pool);
  expect(report.byTable[table]).toBeGreaterThanOrEqual(rowCount ?? NaN);
  expect(await dump()).toEqual(before);
  expect((await rebuild(on.pool)).differences).toBe(0);
});

test.each(TABLES)('inserts missing rows of %s', async (table) => {
  const before = await dump();
  const { rowCount } = await on.admin.query(`delete from ${table}`);
  expect(await rebuild(on.pool)).toMatchObject({ differences: rowCount, byTable: { [table]: rowCount } });
  expect(await dump()).toEqual(before);
});

test('deletes rows that should not exist', async () => {
  const before = await dump();
  const [{ threadId }, stranger] = [await seedThread(on, 'empty'), ulid()];
  await rebuild(on.pool);
  const healthy = await dump();
  await on.admin.query(
    `insert into streams select $1, version, last_event_id, last_occurred_at, state from streams limit 1`,
    [stranger],
  );
  const summary = `agent_id, organization_id, user_id, kind, owner_person_id, owner_service_token_id, status, title, last_run_id, archived, created_at, updated_at, client_external_ref`;
  await on.admin.query(`insert into thread_summaries select $1, ${summary} from thread_summaries limit 1`, [ulid()]);
  const run = `status, trigger, created_at, started_at, completed_at, updated_at, error, final_output`;
  for (const thread of [threadId, ulid(), 'Z', '0']) {
    await on.admin.query(`insert into run_summaries select $1, $2, ${run} from run_summaries limit 1`, [
      ulid(),
      thread,
    ]);
  }
  expect(await rebuild(on.pool)).toMatchObject({ differences: 6 });
  expect(await dump()).toEqual(healthy);
  expect(healthy.length).toBeGreaterThan(before.length);
});

test('moves a Run back that was stored under another Thread, in either order of the two Threads', async () => {
  const before = await dump();
  const swap = `update run_summaries r set thread_id = o.thread_id
                from run_summaries o where o.run_id = (select min(run_id) from run_summaries where thread_id <> r.thread_id)`;
  await on.admin.query(swap);
  await rebuild(on.pool);
  await rebuild(on.pool);
  expect(await dump()).toEqual(before);
});

test('repairs a Thread that is appended to between its check and its lock', async () => {
  const { threadId } = await seedThread(on, 'empty');
  await on.admin.query(`update thread_summaries set title = 'broken', user_id = 'broken' where thread_id = $1`, [
    threadId,
  ]);
  // An append in progress, on a connection that the test commits.
  await on.admin.query('begin');
  const store = new ThreadStore(on.pool);
  const load = await store.load(threadId);
  expect(load?.version).toBe(1);
  await on.admin.query('select from streams where thread_id = $1 for update', [threadId]);
  const rebuilding = rebuild(on.pool);
  await waitUntilBlocked();
  const id = ulid(Date.now() + 1_000);
  await on.admin.query(
    `insert into events (thread_id, version, id, type, schema_version, data, public, occurred_at)
     values ($1, 2, $2, 'thread.archived', 1, '{}', true, now())`,
    [threadId, id],
  );
  await on.admin.query(
    `update streams set version = 2, last_event_id = $2, last_occurred_at = now(),
                        state = jsonb_set(state, '{lifecycle}', '"archived"') where thread_id = $1`,
    [threadId, id],
  );
  await on.admin.query(`update thread_summaries set archived = true where thread_id = $1`, [threadId]);
  await on.admin.query('commit');
  expect((await rebuilding).byTable).toMatchObject({ thread_summaries: 1 });
  const { rows } = await on.admin.query('select title, archived from thread_summaries where thread_id = $1', [
    threadId,
  ]);
  expect(rows).toEqual([{ title: null, archived: true }]);
});

test('does not change Threads with events of another release or events that it cannot fold', async () => {
  const [future, poisoned] = [await seedThread(on, 'completed'), await seedThread(on, 'completed')];
  const made: string[] = [];
  for (const [{ threadId }, type, data] of [
    [future, 'thread.renamed', {}],
    [poisoned, 'run.queued', null],
  ] as const) {
    const id = ulid(Date.now() + 1_000);
    made.push(id);
    await on.admin.query(
      `insert into events (thread_id, version, id, type, schema_version, data, run_id, public, occurred_at)
       select thread_id, version + 1, $2, $3, 1, $4, 'run', false, last_occurred_at from streams where thread_id = $1`,
      [threadId, id, type, JSON.stringify(data)],
    );
    await on.admin.query('update streams set version = version + 1, last_event_id = $2 where thread_id = $1', [
      threadId,
      id,
    ]);
    await on.admin.query(`update thread_summaries set title = 'as the other release folds it' where thread_id = $1`, [
      threadId,
    ]);
  }
  const before = await dump();
  const report = await rebuild(on.pool);
  expect(report).toMatchObject({ differences: 0, left: 2 });
  expect(report.leftThreadIds.sort()).toEqual([future.threadId, poisoned.threadId].sort());
  expect(await dump()).toEqual(before);
  await on.admin.query('delete from events where id = any ($1)', [made]);
  await rebuild(on.pool);
});

test('continues after a kill from the last Thread, and reads are correct throughout (F18)', async () => {
  const before = await dump();
  await on.admin.query(`update thread_summaries set title = 'broken'`);
  await on.admin.query(`update run_summaries set status = 'broken'`);
  const doomed = await openDatabase({ url: on.url, applicationName: 'doomed', maxConnections: 1 });
  // Slow enough that it cannot finish before it is killed.
  const blocker = await on.pool.connect();
  await blocker.query('begin');
  await blocker.query('select from streams order by thread_id desc limit 1 for update');
  const done: RebuildReport[] = [];
  let killed: Promise<unknown> | undefined;
  const rebuilding = rebuild(doomed.pool, {
    pageEvents: 40,
    onProgress: (progress) => {
      done.push(structuredClone(progress));
      if (done.length !== 3) return;
      const kill = `select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'doomed' and datname = current_database()`;
      killed = on.admin.query(kill);
    },
  });
  await expect(rebuilding).rejects.toThrow();
  await killed;
  await doomed.close();
  await blocker.query('rollback');
  blocker.release();
  const last = done.at(-1);
  expect(last?.differences).toBeGreaterThan(0);
  const { rows } = await on.admin.query(`select thread_id from thread_summaries where title = 'broken' order by 1`);
  expect(rows.length).toBeGreaterThan(0);
  const rest = await rebuild(on.pool, { from: last?.lastThreadId ?? '', pageEvents: 40 });
  expect(rest.differences).toBeGreaterThan(0);
  expect(await dump()).toEqual(before);
});

test('during appends it repairs only broken rows, and readers see whole rows (F18)', async () => {
  const { threadId, runId } = await seedThread(on, 'completed');
  const read = `select t.status, t.title, r.status as run from thread_summaries t join run_summaries r on r.run_id = $2
                where t.thread_id = $1`;
  const right = { status: 'IDLE', title: 'Hello', run: 'completed' };
  const stop = appendUntilStopped(on, 4);
  for (let i = 0; i < 5; i++) {
    expect(await rebuild(on.pool, { pageEvents: 100 })).toMatchObject({ differences: 0, left: 0 });
    await on.admin.query(`update run_summaries set trigger = 'broken' where run_id = $1`, [runId]);
    let isDone = false;
    const rebuilding = rebuild(on.pool, { pageEvents: 100 }).finally(() => (isDone = true));
    while (!isDone) expect((await on.admin.query(read, [threadId, runId])).rows).toEqual([right]);
    expect((await rebuilding).byTable).toEqual({
      ...{ streams: 0, thread_summaries: 0, run_summaries: 1 },
      file_usage: 0,
    });
  }
  expect(await stop()).toBeGreaterThan(10);
});

test('an open transaction with an append delays no other append, rebuild or verification (F19)', async () => {
  const { threadId } = await seedThread(on, 'empty');
  const other = await seedThread(on, 'empty');
  await on.admin.query('begin');
  await on.admin.query(`update streams set version = version where thread_id = $1`, [threadId]);
  await on.admin.query(`insert into queue_controls values ('open', null)`);
  await apply(on.handler, other.threadId, message(newRun()));
  expect((await rebuild(on.pool)).differences).toBe(0);
  expect((await verify(on.pool)).findings).toEqual([]);
  await on.admin.query('rollback');
});

async function waitUntilBlocked(): Promise<void> {
  const query = `select from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and application_name = 'projections'`;
  await eventually(
    async () => {
      await on.admin.query('select pg_stat_clear_snapshot()');
      return (await on.admin.query(query)).rowCount;
    },
    { what: 'the rebuild waits for a lock' },
  );
}
