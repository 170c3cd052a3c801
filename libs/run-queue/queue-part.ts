import { HEALTH_LIMIT_MS, untilAborted, type HealthPart } from '#platform';
import type { RunQueue } from './run-queue.ts';
import { metrics } from './metrics.ts';

/** Returns the health part of a process that depends on the queue. */
export function queuePart(queue: Pick<RunQueue, 'waitingCount'>, means: string): HealthPart {
  const works = async (): Promise<boolean> => (await queue.waitingCount()) >= 0;
  return { name: 'The queue does not answer', means, works, found: (up) => metrics.queueUp.set(Number(up)) };
}

/** Returns the health part for a pause by a BullMQ tool, which no operator of Spool ordered. `queuePart` reports an outage. */
export function toolPausePart(queue: Pick<RunQueue, 'isPausedByTool'>): HealthPart {
  const works = async (): Promise<boolean> => {
    const asked = untilAborted(queue.isPausedByTool(), AbortSignal.timeout(HEALTH_LIMIT_MS / 2));
    return !(await asked.catch(() => false));
  };
  return { name: 'A BullMQ tool has paused the queue', means: 'no Run starts. Run: spool queue resume', works };
}
