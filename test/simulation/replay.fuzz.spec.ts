import type * as Pg from 'pg';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, isNight, type TestDatabase } from '#testing';
import { appendGroup, valuesOf } from './append-statement.ts';
import type * as Clients from './database-clients.ts';
import { aloneName, groupOf, type Statement } from './database-server.ts';
import type * as Mocks from './mocks.ts';
import { Replayer } from './replay.ts';
import type * as Time from './simulated-time.ts';
import { simulate } from './simulation.ts';
import { StatementLog } from './statement-log.ts';
import { ANSWERED, execute } from './statements.ts';
import { STATEMENT_BUGS, type StatementBug } from './tables.ts';

// The simulation executes SQL on a model (tables.ts). This spec replays its statements on PostgreSQL, and compares the results.
//
// `SPOOL_SEEDS=500 npx jest replay.fuzz` replays more seeds; `SPOOL_FROM_SEED` is the first.

jest.mock('node:timers/promises', () => {
  const { sleep } = jest.requireActual<typeof Mocks>('./mocks.ts');
  return { setTimeout: sleep };
});
// The simulation's own clients while it runs, and real ones for the replay.
// Work takes no time there, and turns of the real event loop are not those of a simulated process.
jest.mock('../../libs/platform/process/own-turn.ts', () => ({
  ownTurn: async () => undefined,
  pauseIfLong: () => undefined,
}));
jest.mock('pg', () => {
  const actual = jest.requireActual<typeof Pg>('pg');
  const { SimulatedClient } = jest.requireActual<typeof Clients>('./database-clients.ts');
  const { runningScheduler } = jest.requireActual<typeof Time>('./simulated-time.ts');
  function Client(settings: never): object {
    return runningScheduler() === null ? new actual.Client(settings) : new SimulatedClient(settings);
  }
  return { ...actual, Client };
});
jest.mock('ulid', () => {
  const { monotonicFactory } = jest.requireActual<typeof Mocks>('./mocks.ts');
  return { ...jest.requireActual<object>('ulid'), monotonicFactory };
});

const SEEDS = Number(process.env['SPOOL_SEEDS'] ?? 4);
const FROM_SEED = Number(process.env['SPOOL_FROM_SEED'] ?? 1);
/** Seeds with limits, retries, pauses, deletes, and statements that wait for locks: all outcomes in little time. */
const RICH_SEEDS = [192, 178, 167, 138, 79, 399];
/** Long ones, which replay thousands of statements. */
const LONG_SEEDS = [117, 184, 347, 453, 490, 492];
/** The most additional seeds until every statement was replayed. */
const MORE_SEEDS = 150;

/** Outcomes that the replay must include. */
const REQUIRED = [
  ...['append: appended', 'append: keySeen', 'append: nothing', 'append: waits', 'append: 23505'],
  ...['append in a group: appended', 'append in a group: nothing', 'append-events in a group: appended'],
  ...['append-events in a group: nothing', 'group: several members', 'group: 23505'],
  ...['append-events: appended', 'append-events: nothing', 'find-appended: found', 'find-appended: nothing'],
  ...['refuse-beyond-limits: limitedBy agent', 'refuse-beyond-limits: limitedBy organization'],
  ...['refuse-beyond-limits: nothing', 'lock-limits: waits', 'delete-thread: nothing'],
  ...['wake-delayed-runs: woken', 'wake-delayed-runs: nextInMs', 'read-controls: crowded, limited, slots'],
  ...['select pg_try_advisory_lock: held', 'select pg_try_advisory_lock: nothing', 'select pg_advisory_unlock: rows'],
];
const WITHOUT_ROWS = ['append', 'append-events', 'find-appended', 'refuse-beyond-limits', 'delete-thread'];
const COUNTED_APART = [...WITHOUT_ROWS, 'wake-delayed-runs', 'read-controls', 'select pg_try_advisory_lock'];

let testDatabase: TestDatabase;
let database: Database;
let replayer: Replayer;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'replay', maxConnections: 60 });
  await Replayer.prepare(database.pool);
});

beforeEach(() => {
  replayer = new Replayer(database.pool);
});

afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

/** Returns the first difference between the model and PostgreSQL, or null. */
async function differenceOf(seed: number, bugs: StatementBug[] = []): Promise<string | null> {
  const log = new StatementLog();
  await simulate(seed, { record: log, bugs });
  createAgain(log);
  lookAtWork(log);
  const difference = await replayer.replay(log);
  return difference && `seed ${seed}, ${difference}`;
}

/** Creates an existing Thread again without its key, in a group and alone, which no caller of the simulation does. */
function createAgain(log: StatementLog): void {
  const members = log.executedStatements().flatMap(({ statement }) => statement.members ?? []);
  const creation = members.find(
    ({ values: [threadId, version] }) => version === '0' && log.tables.streams.has(threadId!),
  );
  if (creation === undefined) return;
  const again = { ...creation, values: creation.values.map((value, i) => (i >= 14 && i < 19 ? null : value)) };
  const statement = { text: again.text, name: aloneName(again), values: valuesOf(again) };
  expectError(groupOf([again], 0), () => appendGroup(log.tables, [again], () => false));
  expectError(statement, () => execute(log.tables, statement.name, statement.text, statement.values));

  function expectError(failing: Statement, act: () => void): void {
    try {
      act();
    } catch (error) {
      log.executed(null, failing, error as Error);
    }
  }
}

/** Reads a work item as the reaper does after a failed append, which few seeds reach. */
function lookAtWork(log: StatementLog): void {
  const text = 'select from run_work where run_id = $1';
  for (const runId of log.tables.work.keys()) {
    const rows = execute(log.tables, undefined, text, [runId]) as Record<string, unknown>[];
    log.executed(null, { text, values: [runId] }, { rows, rowCount: rows.length });
  }
}

function missing(): string[] {
  const plain = ANSWERED.filter((name) => !COUNTED_APART.includes(name)).map((name) => `${name}: rows`);
  return [...REQUIRED, ...plain].filter((what) => !replayer.seen.has(what));
}

test('PostgreSQL returns and stores the same as the model of the simulation', async () => {
  const rich = isNight ? [...RICH_SEEDS, ...LONG_SEEDS] : RICH_SEEDS;
  const seeds = [...rich, ...Array.from({ length: SEEDS }, (_, i) => FROM_SEED + i)];
  for (let i = 0; i < seeds.length || (missing().length > 0 && i < seeds.length + MORE_SEEDS); i++)
    expect(await differenceOf(seeds[i] ?? FROM_SEED + i)).toBeNull();
  expect(missing()).toEqual([]);
}, 600_000);

test.each(STATEMENT_BUGS)('the replay finds the planted mistake: %s', async (bug) => {
  expect(await firstDifference([420, 3, 50, 181, 45, ...LONG_SEEDS, 11, 12, 109], bug)).not.toBeNull();
});

async function firstDifference(seeds: number[], bug: StatementBug): Promise<string | null> {
  for (const seed of seeds) {
    const difference = await differenceOf(seed, [bug]);
    if (difference !== null) return difference;
  }
  return null;
}
