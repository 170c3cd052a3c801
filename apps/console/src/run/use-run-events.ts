import { useEffect, useState } from 'react';
import type { AdminAnswer, AdminOperations } from '#contract';
import { get } from '../api/client.ts';

export type RunEvent = AdminAnswer<AdminOperations['listRunEvents']>['events'][number];

const PATH = '/runs/{runId}/events';
/** The maximum number of events that one request returns. */
const PAGE = 100;

/**
 * Reads the stored events of a Run that have the versions `wanted`, which must ascend. Stored events never change, so
 * those that were read are kept. After a failure, reads nothing until `tryAgain` is called.
 */
export function useRunEvents(runId: string, wanted: readonly number[]) {
  const [events, setEvents] = useState<ReadonlyMap<number, RunEvent>>(new Map());
  const [failure, setFailure] = useState<Error | null>(null);
  const next = wanted.find((version) => !events.has(version));
  useEffect(() => {
    if (next === undefined || failure !== null) return;
    const controller = new AbortController();
    const { signal } = controller;
    // Reads a whole page, because the next events are often wanted too.
    get(PATH, { params: { runId }, query: { afterVersion: next - 1, limit: PAGE } }, signal).then(
      (page) =>
        setEvents((known) => new Map([...known, ...page.events.map((event) => [event.version, event] as const)])),
      (error: Error) => {
        if (!signal.aborted) setFailure(error);
      },
    );
    return () => controller.abort();
  }, [runId, next, failure]);
  return { events, failure, tryAgain: () => setFailure(null) };
}

/** The maximum size of a copy, in characters of JSON. */
const MAX_COPIED = 50_000_000;

/** Reads all events with the content of a Run. Throws CallError, or an error for people if they are too large. */
export async function readRunEvents(runId: string, signal: AbortSignal): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  let size = 0;
  for (let afterVersion: number | null = 0; afterVersion !== null;) {
    const call = { params: { runId }, query: { afterVersion, limit: PAGE } };
    const page: AdminAnswer<AdminOperations['listRunEvents']> = await get(PATH, call, signal);
    events.push(...page.events);
    size += JSON.stringify(page.events).length;
    if (size > MAX_COPIED) {
      throw new Error(`This Run is too large to copy. Read it with: spool run events ${runId} --all --json`);
    }
    afterVersion = page.nextAfterVersion;
  }
  return events;
}
