import pg from 'pg';
import type { RunJob } from '#event-store';
import { createTestDatabase } from '#testing';
import { traceQueue } from './trace-queue.ts';

// Real: PostgreSQL and a pool. The queue only keeps what it is offered.

test('an offer does not wait for its trace where no connection is free', async () => {
  const testDatabase = await createTestDatabase();
  // Without a limit of its own: it would wait as long as the test may take.
  const pool = new pg.Pool({ connectionString: testDatabase.url, max: 1 });
  const offered: RunJob[] = [];
  const offer = (jobs: RunJob[]) => Promise.resolve(void offered.push(...jobs));
  const queue = { enqueue: offer, enqueueAhead: offer, consume: () => undefined };
  traceQueue(queue as never, { pool, name: 'test' });
  const taken = await pool.connect();
  try {
    const one = { runId: 'r', threadId: 't', dispatch: 1 };
    await queue.enqueue([one]);
    expect(offered).toEqual([one]);
  } finally {
    taken.release();
    await pool.end();
    await testDatabase.drop();
  }
});
