import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { TEXT } from '../load/order.ts';
import { looped, type Figures } from '../measure.ts';
import { answerParent } from '../processes.ts';
import { factsOfCreation } from './plain-facts.ts';
import { newPlainId, openPlainPool, PlainStore } from './plain-store.ts';
import type { FloorJob, FloorQueue } from './queue.ts';

/** The message that starts the process, or requests one round. */
export type ComposedQuestion =
  | { start: { databaseUrl: string; poolSize: number; queue: FloorQueue } }
  | { clients: number; forMs: number };

/** A Run that takes longer fails the round. */
const RUN_WITHIN_MS = 30_000;

/** Returns a function that executes one Run: one statement, one job, and the worker's notification at the end. */
async function composedRun({
  databaseUrl,
  poolSize,
  queue,
}: {
  databaseUrl: string;
  poolSize: number;
  queue: FloorQueue;
}) {
  const store = new PlainStore(openPlainPool(databaseUrl, poolSize));
  const connection = new Redis(queue.redisUrl, { maxRetriesPerRequest: null });
  const jobs = new Queue<FloorJob>(queue.name, { connection });
  const options = { attempts: 1, removeOnComplete: true, removeOnFail: true };
  const waiting = new Map<string, () => void>();
  const subscriber = new Redis(queue.redisUrl);
  await subscriber.subscribe(queue.name);
  subscriber.on('message', (_channel: string, threadId: string) => waiting.get(threadId)?.());
  return async (): Promise<undefined> => {
    const job = { threadId: newPlainId(), runId: newPlainId() };
    let timer: NodeJS.Timeout | undefined;
    const done = new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the Run did not end within ${RUN_WITHIN_MS} ms`)), RUN_WITHIN_MS);
      waiting.set(job.threadId, resolve);
    });
    try {
      await store.create(job.threadId, job.runId, factsOfCreation(TEXT));
      await jobs.add('run', job, { ...options, jobId: job.runId });
      await done;
    } finally {
      clearTimeout(timer);
      waiting.delete(job.threadId);
    }
  };
}

let run: () => Promise<undefined>;

/** The independent floor of a round trip: accepts Runs and waits for their end in this process, without HTTP. */
answerParent(async (question: ComposedQuestion): Promise<Figures | null> => {
  if ('start' in question) {
    run = await composedRun(question.start);
    return null;
  }
  return looped(() => run(), question.clients)(question.forMs);
});
