import { Redis } from 'ioredis';
import pg from 'pg';
import { answerParent } from '../processes.ts';
import { template, type RecordedRun } from '../recorded-run.ts';
import type { FloorJob, FloorQueue } from './queue.ts';
import { workThrough } from './work-through.ts';

/** What the hand-written worker is started with. */
export interface FloorWorkerOptions {
  databaseUrl: string;
  poolSize: number;
  slots: number;
  run: RecordedRun;
  queue: FloorQueue;
}

/** One bare BullMQ job a Run: sends the recorded appends one after the other, and a wake-up behind each. */
answerParent(async ({ databaseUrl, poolSize, slots, run, queue }: FloorWorkerOptions): Promise<string> => {
  const [, ...appends] = run.statements.map((statement) => template(statement, run.ids));
  const pool = new pg.Pool({ connectionString: databaseUrl, max: poolSize, options: '-c timezone=UTC' });
  const publisher = new Redis(queue.redisUrl);
  const work = async ({ threadId, runId }: FloorJob): Promise<void> => {
    for (const fill of appends) {
      const { rows } = await pool.query<{ appended: boolean }>(fill([threadId, runId]));
      if (rows[0]?.appended !== true) throw new Error('the floor did not append');
      void publisher.publish(queue.name, threadId);
    }
  };
  await workThrough(queue, slots, work);
  return 'ready';
});
