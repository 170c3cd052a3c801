import { evolve, initialState, isKnownEvent, type StoredEvent, type ThreadState, type UnknownEvent } from '#domain';
import { foldSummaries, noSummaries, type Summaries } from './fold.ts';

/** A stream folded from its start: the expected state row and summaries. */
export interface Replay {
  version: number;
  lastEventId: string | null;
  lastOccurredAt: string | null;
  state: ThreadState;
  summaries: Summaries;
  /** Events that this release does not know. Their effects are unknown too. */
  unknownEvents: number;
}

export const emptyReplay: Replay = {
  version: 0,
  lastEventId: null,
  lastOccurredAt: null,
  state: initialState,
  summaries: noSummaries,
  unknownEvents: 0,
};

/** Returns the replay after the next events of the stream. */
export function replay(before: Replay, events: readonly (StoredEvent | UnknownEvent)[]): Replay {
  const last = events.at(-1);
  if (last === undefined) return before;
  const known = events.filter(isKnownEvent);
  return {
    version: last.version,
    lastEventId: last.id,
    lastOccurredAt: last.occurredAt,
    state: known.reduce(evolve, before.state),
    summaries: foldSummaries(before.summaries, known),
    unknownEvents: before.unknownEvents + events.length - known.length,
  };
}
