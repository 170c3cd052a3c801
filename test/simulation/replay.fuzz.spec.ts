import type * as Pg from 'pg';
import { openDatabase, type Database } from '#platform';
import { createTestDatabase, isNight, type TestDatabase } from '#testing';
import type * as Clients from './database-clients.ts';
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
const RICH_SEEDS = [420, 9, 35, 24, 34, 6];
/** Long ones, which replay thousands of statements. */
const LONG_SEEDS = [117, 184, 347, 453, 490, 492];
/** The most additional seeds until every statement was replayed. */
const MORE_SEEDS = 150;

/** Outcomes that the replay must include. */
const REQUIRED = [
  ...['append: appended', 'append: keySeen', 'append: nothing', 'append: waits', 'append: 23505'],
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

/** Creates an existing Thread again without its key, which no caller of the simulation does. */
function createAgain(log: StatementLog): void {
  for (const { statement } of log.executedStatements()) {
    const { name, text, values = [] } = statement;
    if (name !== 'append' || values[1] !== 0 || !log.tables.streams.has(values[0] as string)) continue;
    const again = { name, text, values: [...values.slice(0, 14), null, null, null, null, null, null] };
    try {
      execute(log.tables, name, text, again.values);
    } catch (error) {
      log.executed(null, again, error as Error);
    }
    return;
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
  expect(await firstDifference([420, 3, ...LONG_SEEDS, 11, 12], bug)).not.toBeNull();
});

async function firstDifference(seeds: number[], bug: StatementBug): Promise<string | null> {
  for (const seed of seeds) {
    const difference = await differenceOf(seed, [bug]);
    if (difference !== null) return difference;
  }
  return null;
}
