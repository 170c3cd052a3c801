import { useEffect, useState } from 'react';
import type { AdminAnswer, AdminOperations } from '#contract';
import { get } from '../api/client.ts';

export type RunEvent = AdminAnswer<AdminOperations['listRunEvents']>['events'][number];

const PATH = '/runs/{runId}/events';
/** The most events that one request returns. */
const PAGE = 100;

/** Stored events never change, so each is read once. `wanted`: versions, ascending. */
export function useRunEvents(runId: string, wanted: readonly number[]) {
  const [events, setEvents] = useState<ReadonlyMap<number, RunEvent>>(new Map());
  const [error, setError] = useState<Error | null>(null);
  const missing = wanted.filter((version) => !events.has(version));
  const [next] = missing;
  const limit = Math.min(PAGE, missing.length);
  useEffect(() => {
    if (next === undefined) return;
    const { signal, abort } = abortable();
    get(PATH, { params: { runId }, query: { afterVersion: next - 1, limit } }, signal).then(
      (page) => {
        setError(null);
        setEvents((known) => new Map([...known, ...page.events.map((event) => [event.version, event] as const)]));
      },
      (problem: Error) => {
        if (!signal.aborted) setError(problem);
      },
    );
    return abort;
  }, [runId, next, limit]);
  return { events, error };
}

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** Reads all events of a Run but its text deltas. Throws CallError. */
export async function readAllEvents(runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for (let afterVersion: number | null = 0; afterVersion !== null;) {
    const page: AdminAnswer<AdminOperations['listRunEvents']> = await get(PATH, {
      params: { runId },
      query: { afterVersion, limit: PAGE },
    });
    events.push(...page.events);
    afterVersion = page.nextAfterVersion;
  }
  return events;
}
