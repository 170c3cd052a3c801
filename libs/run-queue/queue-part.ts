import { metrics, type HealthPart } from '#platform';
import type { RunQueue } from './run-queue.ts';

/** The queue, as a process depends on it. */
export function queuePart(queue: Pick<RunQueue, 'waitingCount'>, means: string): HealthPart {
  const works = async (): Promise<boolean> => (await queue.waitingCount()) >= 0;
  return { name: 'The queue does not answer', means, works, found: (up) => metrics.queueUp.set(Number(up)) };
}
