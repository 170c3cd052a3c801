import { Client } from 'pg';
import { pino } from 'pino';
import { createTestDatabase, eventually, type FaultProxy, faultProxy, type TestDatabase } from '#testing';
import { LeaderLoop } from './leader-loop.ts';

const lockId = 42;
/** An interval longer than a test: the follower tries only after a notification. */
const NEVER_MS = 3_600_000;
let database: TestDatabase;
let admin: Client;
let loops: LeaderLoop[];
let proxy: FaultProxy;
let log: string;
const logger = pino({ level: 'info' }, { write: (line: string) => void (log += line) });

beforeEach(async () => {
  database = await createTestDatabase();
  admin = new Client({ connectionString: database.url });
  await admin.connect();
  proxy = await faultProxy(Number(new URL(database.url).port));
  loops = [];
  log = '';
});

afterEach(async () => {
  await Promise.all(loops.map((loop) => loop.stop()));
  await proxy.close();
  await admin.end();
  await database.drop();
});

function newLoop(
  tick: (signal: AbortSignal) => Promise<number>,
  { databaseUrl = database.url, ...times }: { databaseUrl?: string; tryMs?: number; silenceMs?: number } = {},
): LeaderLoop {
  const loop = new LeaderLoop({ databaseUrl, lockId, name: 'test', tick, logger, ...times });
  loops.push(loop);
  loop.start();
  return loop;
}

const leads = (loop: LeaderLoop): Promise<unknown> =>
  eventually(() => loop.isLeader, { what: 'it leads', timeoutMs: 30_000 });
const cutConnection = (): Promise<unknown> =>
  admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'spool test'`);

it('ticks after its pause, and immediately when nudged', async () => {
  let ticks = 0;
  const loop = newLoop(async () => (++ticks < 3 ? 1 : 60_000));
  await eventually(() => ticks === 3, { what: 'it has ticked three times' });
  loop.nudge();
  await eventually(() => ticks === 4, { what: 'it has ticked a fourth time' });
});

it('ticks again when nudged during a tick', async () => {
  let ticks = 0;
  let finish = (): void => undefined;
  const loop = newLoop(async () => {
    if (++ticks === 1) await new Promise<void>((resolve) => (finish = resolve));
    return 60_000;
  });
  await eventually(() => ticks === 1, { what: 'it ticks' });
  loop.nudge();
  finish();
  await eventually(() => ticks === 2, { what: 'it has ticked again' });
});

it('leads and ticks after failed ticks, and logs only the first failure', async () => {
  let ticks = 0;
  const loop = newLoop(async () => {
    if (++ticks < 3) throw new Error('out of luck');
    return 60_000;
  });
  await eventually(() => ticks === 3, { what: 'it ticks again' });
  expect(loop.isLeader).toBe(true);
  expect(log.match(/ tick failed/g)).toHaveLength(1);
  expect(log).toContain('out of luck');
});

test('has one leader; when it stops, a follower is notified and leads', hasOneLeader, 30_000);

const TRIED = `select from pg_stat_activity where application_name = 'spool test' and query like '%pg_try_advisory_lock%'`;

/** Starts a second loop and waits until it has tried the lock. */
async function newFollower(tryMs?: number): Promise<LeaderLoop> {
  const follower = newLoop(async () => 60_000, { ...(tryMs && { tryMs }) });
  await eventually(async () => (await admin.query(TRIED)).rowCount === 2, { what: 'both have tried' });
  expect(follower.isLeader).toBe(false);
  return follower;
}

async function hasOneLeader(): Promise<void> {
  const first = newLoop(async () => 60_000);
  await leads(first);
  const second = await newFollower(NEVER_MS);
  await first.stop();
  expect(first.isLeader).toBe(false);
  await eventually(() => second.isLeader, { what: 'the other leads' });
}

const takesOver = async (): Promise<void> => {
  await leads(newLoop(async () => 60_000, { databaseUrl: proxy.through(database.url) }));
  const follower = await newFollower();
  proxy.cut();
  await leads(follower);
  proxy.resume();
};
test('a follower takes over when the leader’s connection is closed', takesOver, 30_000);

it('aborts the tick when its connection is cut, and leads again', async () => {
  const seen: string[] = [];
  const loop = newLoop(async (signal) => {
    seen.push('begin');
    if (seen.length === 1) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      seen.push('aborted');
      throw new Error('torn off');
    }
    return 60_000;
  });
  await leads(loop);
  await cutConnection();
  await eventually(() => seen.length === 3, { what: 'it leads again' });
  expect(seen).toEqual(['begin', 'aborted', 'begin']);
  expect(log).not.toContain('torn off');
});

it('loses to a follower when its network is dead, although its connection stays open', async () => {
  const cutOff = newLoop(async () => 60_000, { databaseUrl: proxy.through(database.url), silenceMs: 1_500 });
  await leads(cutOff);
  const other = newLoop(async () => 60_000);
  proxy.stall();
  await leads(other);
  await eventually(() => !cutOff.isLeader, { what: 'it has noticed' });
});

it('stops while the database is unavailable', async () => {
  const loop = newLoop(async () => 1, { databaseUrl: 'postgres://user@127.0.0.1:1/nothing' });
  await eventually(() => log.includes('connection failed'), { what: 'it has failed to connect' });
  await loop.stop();
  expect(loop.isLeader).toBe(false);
});
