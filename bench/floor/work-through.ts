import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { FloorJob, FloorQueue } from './queue.ts';

/** Starts a BullMQ worker. A failed job ends the process, so that the benchmark fails and shows the output. */
export async function workThrough(
  { redisUrl, name }: FloorQueue,
  concurrency: number,
  work: (job: FloorJob) => Promise<void>,
): Promise<void> {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const worker = new Worker<FloorJob>(name, ({ data }) => work(data), { connection, concurrency });
  worker.on('failed', (_job, error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
  await worker.waitUntilReady();
}
