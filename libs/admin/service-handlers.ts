import type { SomeHandlers } from './handlers.ts';
import { audited, type Actor } from './audit.ts';
import { runDoctor, type DoctorParts } from './doctor.ts';
import { overviews } from './overview.ts';
import { readQueue } from './read-queue.ts';
import { AdminReader, pageOf } from './reader.ts';
import { AdminRefused } from './refused.ts';

export type ServiceHandlerParts = DoctorParts;

/** Handles the queue, and the installation as a whole. */
export function serviceHandlers(
  parts: ServiceHandlerParts,
): SomeHandlers<'getOverview' | 'getQueue' | 'pauseQueue' | 'resumeQueue' | 'runDoctor' | 'listAudit'> {
  const { pool, config, controls } = parts;
  const reader = new AdminReader(pool);
  const queueName = config.QUEUE_NAME;
  const status = async () => ({ queue: await readQueue(parts) });
  const overviewOf = overviews(parts);
  return {
    getOverview: async ({ query: { windowMinutes } }) => ({ overview: await overviewOf(windowMinutes) }),

    getQueue: status,

    pauseQueue: async (_, { actor }) => {
      await audited(pool, actor, async (client, note) => {
        if (await controls.pauseQueue(client)) note({ action: 'queue.paused', targetId: queueName });
      });
      return status();
    },

    resumeQueue: async (_, { actor }) => {
      await resumeQueue(parts, actor);
      return status();
    },

    runDoctor: async () => ({ checks: await runDoctor(parts) }),

    listAudit: async ({ query: { limit, ...wanted } }) => {
      const { page, nextCursor } = pageOf(await reader.audit({ ...wanted, limit: limit + 1 }), limit);
      return { entries: page, nextCursor };
    },
  };
}

/**
 * Ends the pauses of operators and BullMQ tools. Throws AdminRefused if the queue is unavailable, so a tool's pause remains. BullMQ
 * cannot share the transaction, so the entry is written before its pause ends.
 */
async function resumeQueue(parts: ServiceHandlerParts, actor: Actor): Promise<void> {
  const { pool, config, controls, queue } = parts;
  const { pausedAt, pausedBy = [] } = await readQueue(parts);
  const isByTool = pausedBy.includes('bullmq');
  // The overview leaves the pause out of the start latency.
  const details = { ...(pausedAt === null ? {} : { pausedAt }), ...(isByTool ? { pausedBy } : {}) };
  await audited(pool, actor, async (client, note) => {
    const isResumed = await controls.resumeQueue(client);
    if (isResumed || isByTool) note({ action: 'queue.resumed', targetId: config.QUEUE_NAME, details });
  });
  if (isByTool) await queue.liftToolPause().catch(refuseQueueUnavailable);
}

function refuseQueueUnavailable(): never {
  const message = 'The queue does not answer, so the pause by a BullMQ tool remains. Retry later.';
  throw new AdminRefused('conflict', message);
}
