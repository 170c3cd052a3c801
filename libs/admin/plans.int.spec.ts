import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { namedStatement, openDatabase, type Database, type Queryable } from '#platform';
import { createTestDatabase, seedManyThreads, type ManyThreads, type TestDatabase } from '#testing';
import { AdminReader } from './reader.ts';
import { firstRunIdSince } from './run-ids.ts';

// Statements must not scan tables that grow without bound. They are planned with their values, so each is explained with some.

let home: TestDatabase;
let database: Database;
let seeded: ManyThreads;
beforeAll(async () => {
  home = await createTestDatabase();
  database = await openDatabase({ url: home.ownerUrl, applicationName: 'plans', maxConnections: 4 });
  seeded = await seedManyThreads(database.pool);
  await database.pool.query(
    `update run_summaries
     set cause = jsonb_build_object('source', 'provider', 'name', 'api.example', 'status', 503, 'message', run_id)
     where error is not null and hashtext(run_id) % 4 = 0`,
  );
  await database.pool.query('analyze run_summaries');
}, 120_000);
afterAll(async () => {
  await database.close();
  await home.drop();
});

const SCAN = /Seq Scan on (events|streams|run_summaries|thread_summaries|audit_entries)\b/;
/** A bitmap of a whole index if the next line has no index condition: it would not stop at a full page. */
const BITMAP_OF_ALL = /Bitmap Index Scan on \w+/;

async function plansOf(ask: (database: Queryable) => Promise<unknown>): Promise<string[]> {
  const plans: string[][] = [];
  const explaining = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => {
      const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values });
      plans.push(rows.map((row) => row['QUERY PLAN']));
      // The list by cause reads the causes first.
      return text.includes('with recursive causes') ? database.pool.query({ text, values }) : { rows: [] };
    },
  };
  await ask(explaining as unknown as Queryable);
  expect(plans).not.toEqual([]);
  const isScan = (line: string, i: number, lines: string[]): boolean =>
    SCAN.test(line) || (BITMAP_OF_ALL.test(line) && !lines[i + 1]?.includes('Index Cond'));
  return plans.flatMap((lines) => lines.filter(isScan));
}

const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
const read = (wanted: (reader: AdminReader) => Promise<unknown>) => (on: Queryable) => wanted(new AdminReader(on));
const some = { limit: 101 };

test.each<[string, (reader: AdminReader) => Promise<unknown>]>([
  ['live Runs', (reader) => reader.runs({ live: true, ...some })],
  ['live Runs of a status', (reader) => reader.runs({ live: true, status: 'waiting_input', ...some })],
  ['live Runs of an Agent', (reader) => reader.runs({ live: true, agentId: seeded.agentIds[1], ...some })],
  ['all Runs', (reader) => reader.runs(some)],
  ['all Runs by error', (reader) => reader.runs({ errorCode: 'provider_auth', ...some })],
  ['all Runs by no error', (reader) => reader.runs({ errorCode: 'none', ...some })],
  ['all Runs since', (reader) => reader.runs({ since: ago(60), ...some })],
  ['all Runs of an Agent', (reader) => reader.runs({ agentId: seeded.agentIds[1], ...some })],
  ['Runs of a Thread', (reader) => reader.runs({ threadId: seeded.threadId, ...some })],
  ['all Runs of a user', (reader) => reader.runs({ userId: 'user-00000007', ...some })],
  ['all Runs by cause', (reader) => reader.runs({ cause: 'HTTP 503 from api.example', ...some })],
  ['all Runs with a reference', (reader) => reader.runs({ externalRef: 'order-00000007', ...some })],
  ['all Runs that ended since', (reader) => reader.runs({ endedSince: ago(60), ...some })],
  ['live Runs of a user', (reader) => reader.runs({ live: true, userId: 'user-00000007', ...some })],
  ['one Run', (reader) => reader.runs({ id: seeded.threadId })],
  ['Threads', (reader) => reader.threads(some)],
  ['Threads of an Agent', (reader) => reader.threads({ agentId: seeded.agentIds[1], ...some })],
  ['Threads of a user', (reader) => reader.threads({ userId: 'user-00000007', ...some })],
  ['Threads with a reference', (reader) => reader.threads({ externalRef: 'order-00000007', ...some })],
  ['Threads of a person', (reader) => reader.threads({ ownerPersonId: seeded.personId, ...some })],
  ['Threads of a token', (reader) => reader.threads({ ownerTokenId: seeded.personId, ...some })],
  ['one Thread', (reader) => reader.threads({ id: seeded.threadId })],
  ['Threads by an id', (reader) => reader.threads({ search: seeded.threadId, ...some })],
  ['Threads by a word', (reader) => reader.threads({ search: 'invoice', ...some })],
  ['the audit log', (reader) => reader.audit(some)],
  ['the audit log of a target', (reader) => reader.audit({ targetId: seeded.threadId, ...some })],
  ['the audit log of an actor', (reader) => reader.audit({ actorId: 'operator 1', ...some })],
])('reads %s without a full scan', async (_, wanted) => {
  expect(await plansOf(read(wanted))).toEqual([]);
});

const OVERVIEW: Record<string, (since: string) => unknown[]> = {
  'overview-database.sql': () => [],
  'overview-failures.sql': (since) => [since],
  'overview-problems.sql': (since) => [since],
  'overview-runs.sql': (since) => [since, firstRunIdSince(since), 5],
};

test.each(Object.entries(OVERVIEW))('reads %s for 5 minutes without a full scan', async (fileName, valuesOf) => {
  const { text } = namedStatement(join(import.meta.dirname, 'queries'), fileName);
  // The window has too few of the seeded Runs to justify a scan.
  expect(await plansOf((on) => on.query({ text, values: valuesOf(ago(5)) }))).toEqual([]);
});

test.each<[string, () => unknown[]]>([
  ['run-content.sql', () => [seeded.threadId, 0, 100, 2_000_000]],
  ['run-texts.sql', () => [seeded.threadId, seeded.threadId, 9, 20_000]],
])('reads %s without a full scan', async (fileName, valuesOf) => {
  const { text } = namedStatement(join(import.meta.dirname, 'queries'), fileName);
  expect(await plansOf((on) => on.query({ text, values: valuesOf() }))).toEqual([]);
});

test('reads the longest unused Agent of a full service token without a full scan', async () => {
  const { text } = namedStatement(join(import.meta.dirname, 'queries'), 'longest-unused-agent.sql');
  expect(await plansOf((on) => on.query({ text, values: [seeded.personId] }))).toEqual([]);
});

test('covers every statement of the overview', () => {
  const files = readdirSync(join(import.meta.dirname, 'queries')).filter((name) => name.startsWith('overview-'));
  expect(files.toSorted()).toEqual(Object.keys(OVERVIEW));
});
