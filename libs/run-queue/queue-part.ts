import { HEALTH_LIMIT_MS, untilAborted, type HealthPart } from '#platform';
import type { RunQueue } from './run-queue.ts';
import { metrics } from './metrics.ts';

/** The queue, as a process depends on it. */
export function queuePart(queue: Pick<RunQueue, 'waitingCount'>, means: string): HealthPart {
  const works = async (): Promise<boolean> => (await queue.waitingCount()) >= 0;
  return { name: 'The queue does not answer', means, works, found: (up) => metrics.queueUp.set(Number(up)) };
}

/** Reports a pause by a BullMQ tool, which no operator of Spool ordered. `queuePart` reports a queue that does not answer. */
export function toolPausePart(queue: Pick<RunQueue, 'isPausedByTool'>): HealthPart {
  const works = async (): Promise<boolean> => {
    const asked = untilAborted(queue.isPausedByTool(), AbortSignal.timeout(HEALTH_LIMIT_MS / 2));
    return !(await asked.catch(() => false));
  };
  return { name: 'A BullMQ tool has paused the queue', means: 'no Run starts. Run: spool queue resume', works };
}
