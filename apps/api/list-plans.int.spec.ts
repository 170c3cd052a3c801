import { escapeLiteral, type Pool } from 'pg';
import { ThreadStore } from '#event-store';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, seedManyThreads, type ManyThreads, type TestDatabase } from '#testing';
import { ThreadReader } from '#threads';
import { Extensions } from './extensions.ts';
import type { ApiRequest } from './http/caller.ts';
import { SummaryReader, type ListedThread, type ThreadsWanted } from './queries/summary-reader.ts';

// With many rows, Thread lists must use index look-ups. Forces generic plans, because PostgreSQL may choose them.

let home: TestDatabase;
let database: Database;
let seeded: ManyThreads;
beforeAll(async () => {
  home = await createTestDatabase();
  database = await openDatabase({ url: home.ownerUrl, applicationName: 'plans', maxConnections: 1 });
  seeded = await seedManyThreads(database.pool);
  // The columns for a person and for a service token.
  await database.pool.query('update thread_summaries set owner_service_token_id = owner_person_id');
  await database.pool.query('vacuum analyze thread_summaries');
  await database.pool.query('set plan_cache_mode = force_generic_plan');
}, 120_000);
afterAll(async () => {
  await database.close();
  await home.drop();
});

type Value = string | number | boolean | null | string[];

const literal = (value: Value): string =>
  value === null ? 'null' : escapeLiteral(Array.isArray(value) ? `{${value.join(',')}}` : String(value));

/** Returns the scans in the plans of the statements. The statement that looks for few Runs finds `few`. */
async function scansOf(ask: (pool: Pool) => Promise<unknown>, few = true): Promise<string[]> {
  const plan: string[] = [];
  const query = async ({ text, values }: { text: string; values: Value[] }) => {
    await database.pool.query(`prepare asked as ${text}`);
    const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) execute asked (${values.map(literal).join(', ')})`,
    );
    await database.pool.query('deallocate asked');
    plan.push(...rows.map((row) => row['QUERY PLAN']));
    return { rows: text.includes(' as few') ? [{ few }] : [] };
  };
  await ask({ query } as unknown as Pool);
  return plan.flatMap(
    (line) => /(?:Seq|Index|Index Only|Bitmap Heap|WorkTable) Scan.*? (?:on|using) (\w+)/.exec(line)?.[1] ?? [],
  );
}

const owners = {
  person: () => ({ owner_person_id: seeded.personId, owner_service_token_id: null }),
  'service token': () => ({ owner_person_id: null, owner_service_token_id: seeded.personId }),
};
const all: Omit<ThreadsWanted, 'owner' | 'agentIds'> = {
  ...{ status: null, archived: false, after: null, limit: 101 },
  filters: { userId: undefined, externalRef: undefined },
  ...{ runStatuses: undefined, maxRunBytes: null },
};

test.each<[keyof typeof owners, ThreadsWanted['filters'], string]>([
  ['person', all.filters, 'thread_summaries_by_person'],
  ['service token', all.filters, 'thread_summaries_by_service'],
  ['person', { ...all.filters, userId: 'user-00000007' }, 'thread_summaries_by_user'],
  ['service token', { ...all.filters, userId: 'user-00000007' }, 'thread_summaries_by_user'],
  ['person', { ...all.filters, externalRef: 'order-00000007' }, 'thread_summaries_by_reference'],
  ['service token', { ...all.filters, externalRef: 'order-00000007' }, 'thread_summaries_by_reference'],
])('the list of a %s by %p uses the index %s', async (owner, filters, index) => {
  const wanted = { ...all, filters, owner: owners[owner](), agentIds: seeded.agentIds };
  const scans = await scansOf((pool) => new SummaryReader(pool).listThreads(wanted));
  expect(scans).toContain(index);
  expect(scans.filter((name) => name === 'thread_summaries')).toEqual([]);
});

describe.each(Object.keys(owners) as (keyof typeof owners)[])(
  'the list of a %s by the status of the newest Run',
  (owner) => {
    const inOrder = owner === 'person' ? 'thread_summaries_by_person' : 'thread_summaries_by_service';
    const scansBy = (wanted: Partial<ThreadsWanted>, few?: boolean) =>
      scansOf(
        (pool) =>
          new SummaryReader(pool).listThreads({
            ...{ ...all, owner: owners[owner](), agentIds: seeded.agentIds, runStatuses: ['waiting_input', 'failed'] },
            ...wanted,
          }),
        few,
      );
    const candidates = ['run_summaries_failed', 'run_work'];
    const sizesAndRuns = ['run_summaries_pkey', 'run_summaries_pkey'];

    test('starts at few Runs, then looks up each Thread', async () => {
      const byKey = ['run_summaries_pkey', 'thread_summaries_pkey'];
      const scans = await scansBy({});
      // Of failed Runs, a Bitmap Heap Scan may read the table.
      expect(scans.filter((name) => name !== 'run_summaries').toSorted()).toEqual(
        [...candidates, ...candidates, ...byKey].toSorted(),
      );
      const withRuns = await scansBy({ maxRunBytes: 1_000 });
      expect(withRuns.filter((name) => name !== 'run_summaries').toSorted()).toEqual(
        [...candidates, ...candidates, ...byKey, ...sizesAndRuns].toSorted(),
      );
    });

    test('looks up the Runs of Threads in order if there are many Runs', async () => {
      const scans = await scansBy({}, false);
      expect(scans.filter((name) => name !== 'run_summaries').toSorted()).toEqual(
        [...candidates, 'run_summaries_pkey', inOrder, 'run_summaries_pkey', inOrder].toSorted(),
      );
    });

    test.each<[string, Partial<ThreadsWanted>, string[]]>([
      ['a status without an index', { runStatuses: ['failed', 'completed'] }, [inOrder]],
      ['a user', { filters: { ...all.filters, userId: 'user-00000007' } }, ['thread_summaries_by_user']],
      [
        'a reference',
        { filters: { ...all.filters, externalRef: 'order-00000007' } },
        ['thread_summaries_by_reference'],
      ],
    ])('looks up the Runs of the Threads of %s', async (_, wanted, indexes) => {
      const scans = ['run_summaries_pkey', ...indexes, 'run_summaries_pkey', ...indexes];
      expect((await scansBy(wanted)).toSorted()).toEqual(scans.toSorted());
      expect((await scansBy({ ...wanted, maxRunBytes: 1_000 })).toSorted()).toEqual(
        [...scans, ...sizesAndRuns].toSorted(),
      );
    });

    test('looks up the newest Run of each Thread of a page', async () => {
      expect((await scansBy({ runStatuses: undefined, maxRunBytes: 1_000 })).toSorted()).toEqual(
        [...sizesAndRuns, inOrder, inOrder].toSorted(),
      );
    });
  },
);

test('the pages of a list with many Agents are in order and complete', async () => {
  const [owner, { agentIds }] = [owners.person(), seeded];
  const [newest, sameTime] = agentIds;
  await database.pool.query(`update thread_summaries set updated_at = '2030-01-01' where agent_id = $1`, [newest]);
  await database.pool.query(
    `update thread_summaries set updated_at = date_trunc('day', updated_at) where agent_id = $1`,
    [sameTime],
  );
  const { rows } = await database.pool.query<{ thread_id: string }>(
    'select thread_id from thread_summaries where not archived order by updated_at desc, thread_id desc limit 500',
  );
  for (const limit of [1, 39, 100]) {
    const read: ListedThread['thread'][] = [];
    while (read.length < 500) {
      const last = read.at(-1);
      const after = last === undefined ? null : { updatedAt: last.updated_at, threadId: last.thread_id };
      const wanted = { ...all, owner, agentIds, after, limit };
      read.push(...(await new SummaryReader(database.pool).listThreads(wanted)).threads.map(({ thread }) => thread));
    }
    expect(read.slice(0, 500).map(({ thread_id }) => thread_id)).toEqual(rows.map(({ thread_id }) => thread_id));
  }
});

test.each(Object.keys(owners) as (keyof typeof owners)[])(
  'the Agents of a %s are looked up one by one',
  async (owner) => {
    const scans = await scansOf((pool) => new SummaryReader(pool).listOwnedAgents(owners[owner]()));
    const index = owner === 'person' ? 'thread_summaries_by_person' : 'thread_summaries_by_service';
    expect(new Set(scans)).toEqual(new Set([index, 'owned']));
  },
);

test('optional fields are looked up by Thread, messages by the index of the transcript', async () => {
  const request = { input: { extended: true } } as ApiRequest;
  const threads = [{ id: seeded.threadId }] as never;
  const scans = await scansOf((pool) => new Extensions(pool).extend(request, { threads }));
  expect(scans.toSorted()).toEqual(['events_transcript', 'thread_summaries_pkey']);
});

test('the requests of Runs are looked up by Thread, by the index of requests', async () => {
  const request = { input: { extended: true } } as ApiRequest;
  const runs = [{ id: seeded.threadId, createdAt: '2026-01-01T00:00:00.000Z' }] as never;
  const scans = await scansOf((pool) => new Extensions(pool).extend(request, { runs }));
  expect(scans.toSorted()).toEqual(['events_requests', 'run_summaries_pkey', 'run_summaries_pkey']);
});

test('a Thread and its last entry, also a decision, are found by indices', async () => {
  const store = (pool: Pool): ThreadStore => new ThreadStore(pool, { readLanes: 0 });
  const scans = await scansOf((pool) => store(pool).findThread(seeded.threadId, { withDecisions: true }));
  expect(scans.toSorted()).toEqual([
    ...['events_log', 'events_requests', 'run_summaries_pkey', 'streams_pkey', 'thread_summaries_pkey'],
  ]);
  const wanted = { after: '', maxEvents: 200, withDecisions: true };
  const withLog = await scansOf((pool) => store(pool).findThreadWithLog(seeded.threadId, wanted));
  expect(withLog.toSorted()).toEqual(
    [...scans, 'events_log', 'events_log', 'events_requests', 'streams_pkey'].toSorted(),
  );
});

test('the decision on a request is found by the index of requests', async () => {
  const scans = await scansOf((pool) => new ThreadReader(pool).findDecision(seeded.threadId, 'request'));
  expect(scans).toEqual(['events_requests']);
});

test('the first message is found by the index of the transcript', async () => {
  const scans = await scansOf((pool) => new ThreadReader(pool).findFirstMessage(seeded.threadId));
  expect(scans).toEqual(['events_transcript']);
});
