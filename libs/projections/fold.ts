import { isKnownEvent, type StoredEvent, type UnknownEvent } from '#domain';
import { foldRunSummary, type RunSummary } from './run-summary.ts';
import { foldThreadSummary, type ThreadSummary } from './thread-summary.ts';

/** The summaries of one Thread; `runs` by run id. */
export interface Summaries {
  thread: ThreadSummary | null;
  runs: ReadonlyMap<string, RunSummary>;
}

export const noSummaries: Summaries = { thread: null, runs: new Map() };

/** Returns the summaries after the events. Rows that did not change stay the same objects. Does not change the input. */
export function foldSummaries(before: Summaries, events: readonly (StoredEvent | UnknownEvent)[]): Summaries {
  let { thread } = before;
  const runs = new Map(before.runs);
  for (const event of events) {
    if (!isKnownEvent(event)) continue;
    thread = foldThreadSummary(thread, event);
    if (event.runId === null) continue;
    const run = foldRunSummary(runs.get(event.runId) ?? null, event);
    if (run !== null) runs.set(event.runId, run);
  }
  return { thread, runs };
}
