import { Redis } from 'ioredis';
import { answerParent } from '../processes.ts';
import { endRun, startRun } from './plain-facts.ts';
import { openPlainPool, PlainStore } from './plain-store.ts';
import type { FloorJob, FloorQueue } from './queue.ts';
import { workThrough } from './work-through.ts';

/** The options of the independent floor's worker. */
export interface ComposedWorkerOptions {
  databaseUrl: string;
  poolSize: number;
  slots: number;
  queue: FloorQueue;
}

/** Executes each Run in two commits, the start and everything else. Then announces its end. */
answerParent(async ({ databaseUrl, poolSize, slots, queue }: ComposedWorkerOptions): Promise<string> => {
  const store = new PlainStore(openPlainPool(databaseUrl, poolSize));
  const publisher = new Redis(queue.redisUrl);
  const work = async ({ threadId, runId }: FloorJob): Promise<void> => {
    const run = await startRun(store, threadId, runId);
    await endRun(store, run);
    await publisher.publish(queue.name, threadId);
  };
  await workThrough(queue, slots, work);
  return 'ready';
});
