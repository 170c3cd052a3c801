import { Test } from '@nestjs/testing';
import { Client } from 'pg';
import { pino } from 'pino';
import { absentThread, CommitFeed } from '#event-store';
import { DATABASE, loadConfig, PlatformModule, type Database } from '#platform';
import { createTestDatabase, eventually } from '#testing';
import { Dispatcher } from './dispatcher.ts';
import { DispatcherModule, RUN_QUEUE } from './run-queue.module.ts';
import type { RunQueue } from './run-queue.ts';

let close: () => Promise<void>;
// Also after a failed test, because a running application breaks later files of this Jest worker.
afterEach(() => close());

it('enqueues the Runs that the process commits, leads, and closes everything with the application', async () => {
  const database = await createTestDatabase();
  const config = loadConfig({ DATABASE_URL: database.url });
  const module = await Test.createTestingModule({
    imports: [PlatformModule.forRoot(config, pino({ level: 'silent' })), DispatcherModule],
  }).compile();
  await module.init();
  close = () => module.close();
  const delivered: string[] = [];
  const queue = module.get<RunQueue>(RUN_QUEUE);
  queue.consume(async ({ runId }) => void delivered.push(runId), 2);
  // A job for a queue that does not respond is dropped, and this test has no ready row to enqueue it again.
  await eventually(async () => (await queue.waitingCount()) === 0, { what: 'the queue responds' });
  const [before, after] = [absentThread('thread'), absentThread('thread')];
  const jobs = [{ runId: 'run', threadId: 'thread', dispatch: 1 }];
  module.get(CommitFeed).emit({ before, after, events: [], jobs });
  await eventually(() => delivered.length === 1, { what: 'the Run is delivered' });
  await eventually(() => module.get(Dispatcher).isLeader, { what: 'it leads' });

  // Besides the pool: 4 of the queue, 1 of the leader, and 1 of the platform's watch.
  const { pool } = module.get<Database>(DATABASE);
  const { rows } = await pool.query<{ name: string }>(
    `select application_name as name from pg_stat_activity where datname = current_database()`,
  );
  expect(rows.length).toBeLessThanOrEqual(config.DATABASE_POOL_SIZE + 6);
  expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['spool dispatcher', 'spool queue']));

  await module.close();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const others = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  const noneLeft = async (): Promise<boolean> => (await client.query(others)).rowCount === 0;
  await eventually(noneLeft, { what: 'its connections are closed' });
  await client.end();
  await database.drop();
});
