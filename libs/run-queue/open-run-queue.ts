import { isRedisUrl, throwStartupError, type Logger } from '#platform';
import { BullRunQueue } from './bullmq-run-queue.ts';
import { openPostgresBackend } from './postgres-backend.ts';
import { openRedisBackend } from './redis-backend.ts';
import type { ShownRunQueue } from './run-queue.ts';

export interface OpenRunQueueOptions {
  /** `redis://…`, `rediss://…` or `postgres://…`. */
  url: string;
  /** Each installation on a server needs its own name. */
  name: string;
  logger: Logger;
}

/** Opens the queue. Throws StartError if Redis may lose jobs, or if PostgreSQL is unavailable or refuses the connection. */
export async function openRunQueue({ url, name, logger }: OpenRunQueueOptions): Promise<ShownRunQueue> {
  if (isRedisUrl(url)) return new BullRunQueue({ name, logger, backend: await openRedisBackend(url, name, logger) });
  const backend = await openPostgresBackend(url, name, logger).catch((error: unknown) => throwStartupError(error, url));
  const queue = new BullRunQueue({ name, logger, backend });
  try {
    await queue.waitUntilReady();
    return queue;
  } catch (error) {
    await queue.close().catch(() => undefined);
    return throwStartupError(error, url);
  }
}
