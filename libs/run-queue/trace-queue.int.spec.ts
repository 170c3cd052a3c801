import pg from 'pg';
import type { RunJob } from '#event-store';
import { createTestDatabase } from '#testing';
import { traceQueue } from './trace-queue.ts';

// Real: PostgreSQL and a pool. The queue only records its jobs.

test('enqueues without a trace if no connection is free', async () => {
  const testDatabase = await createTestDatabase();
  // A pool without a connection timeout would wait until the test times out.
  const pool = new pg.Pool({ connectionString: testDatabase.url, max: 1 });
  const enqueued: RunJob[] = [];
  const enqueue = (jobs: RunJob[]) => Promise.resolve(void enqueued.push(...jobs));
  const queue = { enqueue, enqueueAhead: enqueue, consume: () => undefined };
  traceQueue(queue as never, { pool, name: 'test' });
  const taken = await pool.connect();
  try {
    const one = { runId: 'r', threadId: 't', dispatch: 1 };
    await queue.enqueue([one]);
    expect(enqueued).toEqual([one]);
  } finally {
    taken.release();
    await pool.end();
    await testDatabase.drop();
  }
});
