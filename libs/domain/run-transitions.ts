import type { ThreadEventType } from './events.ts';

/** Every status a Run can have (docs/spec/agent-threads-api.md#states). */
export const RUN_STATUSES = [
  'queued',
  'booting',
  'running',
  'waiting_input',
  'completed',
  'failed',
  'cancelled',
  'expired',
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** The type of a run event after `run.`, without `queued`, which creates a Run instead of moving one. */
export type RunMove = MoveOf<Exclude<ThreadEventType, 'run.queued'>>;
type MoveOf<Type> = Type extends `run.${infer Move}` ? Move : never;

export const RUN_MOVES = [
  'claimed',
  'started',
  'waiting',
  'resumed',
  'requeued',
  'completed',
  'failed',
  'cancelled',
  'expired',
] as const satisfies readonly RunMove[];

export type TerminalStatus = 'completed' | 'failed' | 'cancelled' | 'expired';

const ENDINGS = { failed: 'failed', cancelled: 'cancelled', expired: 'expired' } as const;

/** The complete table of docs/spec/decisions.md#run-transitions. The domain rejects all other transitions. */
const RUN_TRANSITIONS: Record<RunStatus, Partial<Record<RunMove, RunStatus>>> = {
  queued: { claimed: 'booting', ...ENDINGS },
  booting: { started: 'running', requeued: 'queued', ...ENDINGS },
  running: { waiting: 'waiting_input', requeued: 'queued', completed: 'completed', ...ENDINGS },
  waiting_input: { resumed: 'queued', ...ENDINGS },
  completed: {},
  failed: {},
  cancelled: {},
  expired: {},
};

/** Returns the status of a Run after the move, or null if the table has no entry. */
export function nextRunStatus(from: RunStatus, move: RunMove): RunStatus | null {
  return RUN_TRANSITIONS[from][move] ?? null;
}

export function isTerminal(status: RunStatus): status is TerminalStatus {
  return Object.keys(RUN_TRANSITIONS[status]).length === 0;
}
