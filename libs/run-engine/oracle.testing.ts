import { evolve, initialState, type StoredEvent, type ThreadState } from '#domain';

const TERMINAL = ['run.completed', 'run.failed', 'run.cancelled', 'run.expired'];

/**
 * For specs: checks the invariants of a stream (I2, I3, I4 and I6 of docs/reliability.md#invariants). Throws with the name of a
 * violated invariant.
 */
export function expectInvariants(events: readonly StoredEvent[]): void {
  let state: ThreadState = initialState;
  const attempts = new Map<string, number>();
  const ended = new Set<string>();
  events.forEach((event, i) => {
    const { runId, attempt, type } = event;
    expect(['I2', event.version]).toEqual(['I2', i + 1]);
    if (i > 0) expect(event.id > (events[i - 1]?.id ?? '')).toBe(true);
    state = evolve(state, event);
    const claimed = state.lifecycle === 'none' ? [] : state.runs.filter(({ status }) => status !== 'queued');
    expect(['I4', claimed.length <= 1]).toEqual(['I4', true]);
    if (runId === null) return;
    if (type !== 'thread.status_entered') expect(['I3', runId, ended.has(runId)]).toEqual(['I3', runId, false]);
    if (TERMINAL.includes(type)) ended.add(runId);
    if (attempt === null) return;
    expect(['I6', attempt >= (attempts.get(runId) ?? 0)]).toEqual(['I6', true]);
    attempts.set(runId, attempt);
  });
}
