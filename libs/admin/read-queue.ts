import type { Pool } from 'pg';
import type { QueueStatus } from '#contract';
import { isRedisUrl, namedStatement, rethrowUnavailable, type Config } from '#platform';
import type { QueueControls, RunQueue } from '#run-queue';

const READ_QUEUE = namedStatement(`${import.meta.dirname}/queries`, 'queue.sql').text;

export interface QueueParts {
  pool: Pool;
  config: Config;
  queue: RunQueue;
  controls: QueueControls;
}

/** Reads the state of the queue and the workers, even while the queue is unavailable. Throws DatabaseUnavailable. */
export async function readQueue({ pool, config, controls, queue }: QueueParts): Promise<QueueStatus> {
  type Row = Omit<QueueStatus, 'name' | 'backend' | 'offered'>;
  const { QUEUE_NAME: name, QUEUE_URL } = config;
  // Records a tool's pause even if no worker is alive to do it. An unavailable queue is reported below.
  await controls.checkToolPause(queue).catch(() => undefined);
  const [{ rows }, offered] = await Promise.all([
    pool.query<Row>(READ_QUEUE, controls.keys).catch(rethrowUnavailable),
    // Catches every error, because a timeout is an error of the queue's client.
    queue.waitingCount().catch(() => null),
  ]);
  const backend = isRedisUrl(QUEUE_URL) ? 'redis' : 'postgresql';
  const row = rows[0]!;
  const workers = row.workers.map((worker) => ({ ...worker, seenAt: new Date(worker.seenAt).toISOString() }));
  return { name, backend, offered, ...row, workers };
}
