import type { ManagedRun, ManagedThread, Problem } from '#contract';

export type RunStatusName = ManagedRun['status'];
export type ThreadStatusName = ManagedThread['status'];

/** How a state is called and coloured. */
export interface Look {
  label: string;
  /** Of the theme. */
  color: string;
}

/** What a Run's status is called and coloured, wherever it stands: badges, filters, charts. In the order of a Run's life. */
export const RUN_STATUS: Record<RunStatusName, Look> = {
  queued: { label: 'Queued', color: 'gray' },
  booting: { label: 'Booting', color: 'cyan' },
  running: { label: 'Running', color: 'indigo' },
  waiting_input: { label: 'Waiting', color: 'orange' },
  completed: { label: 'Completed', color: 'teal' },
  failed: { label: 'Failed', color: 'red' },
  cancelled: { label: 'Cancelled', color: 'grape' },
  expired: { label: 'Expired', color: 'pink' },
};

export const THREAD_STATUS: Record<ThreadStatusName, Look> = {
  IDLE: { label: 'Idle', color: 'gray' },
  RUNNING: { label: 'Running', color: 'indigo' },
  RESCHEDULING: { label: 'Rescheduling', color: 'orange' },
  TERMINATED: { label: 'Terminated', color: 'grape' },
};

export const SEVERITY: Record<Problem['severity'], Look> = {
  critical: { label: 'Critical', color: 'red' },
  warning: { label: 'Warning', color: 'orange' },
  info: { label: 'Note', color: 'indigo' },
};

/** How a Run may have ended. */
export const OUTCOMES = ['completed', 'failed', 'cancelled', 'expired'] as const satisfies RunStatusName[];
export const hasEnded = (status: RunStatusName): boolean => (OUTCOMES as RunStatusName[]).includes(status);

export const RUN_STATUSES = Object.keys(RUN_STATUS) as RunStatusName[];

/** For a select: all that a table has a name for. */
export const optionsOf = (table: Record<string, Look>): { value: string; label: string }[] =>
  Object.entries(table).map(([value, { label }]) => ({ value, label }));
