import type { ManagedRun } from '#contract';
import { hasEnded } from './status-table.ts';

export type Times = Pick<ManagedRun, 'status' | 'createdAt' | 'startedAt' | 'completedAt'>;

export interface RunTimes {
  /** From its creation to its first start; still growing where it has not started. Null: it ended without one. */
  queueMs: number | null;
  /** From its first start to its end, or to now. Null: it has not started. */
  durationMs: number | null;
}

/** `now` in epoch milliseconds. */
export function runTimes({ status, createdAt, startedAt, completedAt }: Times, now: number): RunTimes {
  const created = Date.parse(createdAt);
  if (startedAt === null) return { queueMs: hasEnded(status) ? null : Math.max(0, now - created), durationMs: null };
  const started = Date.parse(startedAt);
  const end = completedAt === null ? now : Date.parse(completedAt);
  return { queueMs: Math.max(0, started - created), durationMs: Math.max(0, end - started) };
}
