import { Client } from 'pg';
import { pino } from 'pino';
import {
  createTestDatabase,
  eventually,
  expectWithin,
  faultProxy,
  timedTest,
  type FaultProxy,
  type TestDatabase,
} from '#testing';
import { LeaderLoop } from './leader-loop.ts';

const lockId = 42;
/** A follower tries for the lock each second (leader-loop.ts). */
const TRY_MS = 1_000;
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

function newLoop(tick: (signal: AbortSignal) => Promise<number>, databaseUrl = database.url): LeaderLoop {
  const loop = new LeaderLoop({ databaseUrl, lockId, name: 'test', tick, logger });
  loops.push(loop);
  loop.start();
  return loop;
}

const leads = (loop: LeaderLoop): Promise<unknown> =>
  eventually(() => loop.isLeader, { what: 'it leads', timeoutMs: 30_000 });
const cutConnection = (): Promise<unknown> =>
  admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'spool test'`);

it('ticks when its pause is over, and at once when nudged', async () => {
  let ticks = 0;
  const loop = newLoop(async () => (++ticks < 3 ? 1 : 60_000));
  await eventually(() => ticks === 3, { what: 'it has ticked three times' });
  loop.nudge();
  await eventually(() => ticks === 4, { what: 'it has ticked once more' });
});

it('ticks once more when nudged during a tick', async () => {
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

it('survives every failure of a tick, and waits longer after each', async () => {
  let ticks = 0;
  const loop = newLoop(async () => {
    if (++ticks < 3) throw new Error('out of luck');
    return 60_000;
  });
  await eventually(() => ticks === 3, { what: 'it goes on' });
  expect(loop.isLeader).toBe(true);
  expect(log.match(/a tick failed/g)).toHaveLength(1);
  expect(log).toContain('out of luck');
});

timedTest('has one leader; when that one stops, another follows', hasOneLeader, 30_000);

const TRIED = `select from pg_stat_activity where application_name = 'spool test' and query like '%pg_try_advisory_lock%'`;

/** Starts a second loop, which has tried for the lock when this returns. */
async function newFollower(): Promise<LeaderLoop> {
  const follower = newLoop(async () => 60_000);
  await eventually(async () => (await admin.query(TRIED)).rowCount === 2, { what: 'both have tried' });
  expect(follower.isLeader).toBe(false);
  return follower;
}

async function hasOneLeader(): Promise<void> {
  const first = newLoop(async () => 60_000);
  await leads(first);
  const second = await newFollower();
  await first.stop();
  expect(first.isLeader).toBe(false);
  const stoppedAt = performance.now();
  await eventually(() => second.isLeader, { what: 'the other leads' });
  const tookMs = performance.now() - stoppedAt;
  await second.stop();
  // Long before its next try.
  expectWithin(500, tookMs, 'the other led after');
}

const takesOver = async (): Promise<void> => {
  await leads(newLoop(async () => 60_000, proxy.through(database.url)));
  const follower = await newFollower();
  const cutAt = performance.now();
  proxy.cut();
  await leads(follower);
  expectWithin(TRY_MS + 500, performance.now() - cutAt, 'the follower led after');
  proxy.resume();
};
timedTest('takes over within 1,500 ms when the leader’s connection is closed', takesOver, 30_000);

it('stops the tick when its connection is cut, and may lead again', async () => {
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

it('loses to another when its network is dead, though nobody closes the connection', async () => {
  const cutOff = newLoop(async () => 60_000, proxy.through(database.url));
  await leads(cutOff);
  const other = newLoop(async () => 60_000);
  proxy.stall();
  await leads(other);
  await eventually(() => !cutOff.isLeader, { what: 'it has noticed' });
});

it('stops while the database is away', async () => {
  const loop = newLoop(async () => 1, 'postgres://nobody@127.0.0.1:1/nothing');
  await eventually(() => log.includes('no connection to lead with'), { what: 'it has failed to connect' });
  await loop.stop();
  expect(loop.isLeader).toBe(false);
});
