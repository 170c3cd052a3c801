import { escapeLiteral, type Pool } from 'pg';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, seedManyThreads, type ManyThreads, type TestDatabase } from '#testing';
import { ThreadReader } from '#threads';
import { Extensions } from './extensions.ts';
import type { ApiRequest } from './http/caller.ts';
import { SummaryReader, type ThreadsWanted } from './queries/summary-reader.ts';

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

/** Returns the scans in the plan of the statement. */
async function scansOf(ask: (pool: Pool) => Promise<unknown>): Promise<string[]> {
  const plan: string[] = [];
  const query = async ({ text, values }: { text: string; values: Value[] }) => {
    await database.pool.query(`prepare asked as ${text}`);
    const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) execute asked (${values.map(literal).join(', ')})`,
    );
    await database.pool.query('deallocate asked');
    plan.push(...rows.map((row) => row['QUERY PLAN']));
    return { rows: [] };
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

test('the first message is found by the index of the transcript', async () => {
  const scans = await scansOf((pool) => new ThreadReader(pool).findFirstMessage(seeded.threadId));
  expect(scans).toEqual(['events_transcript']);
});
