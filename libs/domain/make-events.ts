import type { EventOf, ThreadEvent, ThreadEventType } from './events.ts';
import type { LiveRun } from './state.ts';

/** Returns an event that no worker wrote. */
export function threadEvent<Type extends ThreadEventType>(
  type: Type,
  data: EventOf<Type>['data'],
  runId: string | null = null,
): ThreadEvent {
  return { type, data, runId, attempt: null } as ThreadEvent;
}

/** Returns an event of the worker that holds the claim. */
export function workerEvent<Type extends ThreadEventType>(
  type: Type,
  data: EventOf<Type>['data'],
  { runId, attempt }: { runId: string; attempt: number },
): ThreadEvent {
  return { type, data, runId, attempt } as ThreadEvent;
}

type Ending = 'run.completed' | 'run.failed' | 'run.cancelled' | 'run.expired';

/** Returns the terminal event of a Run. Its duration counts from the first `started`, and is null if there was none. */
export function endRun<Type extends Ending>(
  run: LiveRun,
  type: Type,
  data: Omit<EventOf<Type>['data'], 'durationMs'>,
  now: string,
  attempt: number | null = null,
): ThreadEvent {
  const durationMs = run.startedAt === null ? null : Math.max(0, Date.parse(now) - Date.parse(run.startedAt));
  return { type, data: { ...data, durationMs }, runId: run.id, attempt } as unknown as ThreadEvent;
}
