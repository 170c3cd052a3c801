import fc from 'fast-check';
import { EVENT_TYPES } from './event-types.ts';
import type { StoredEvent } from './events.ts';
import { toExtendedLogEntry } from './log-entry.ts';
import { toMessageEntries } from './message-entries.ts';
import { anyChances, RandomLog } from './random-log.testing.ts';
import { randomRuns } from './random.testing.ts';
import { reduceThread, type Message, type MessageEntry, type ThreadMessages } from './reduce-thread.ts';

const LOGS = 1_000;
const DELTAS: readonly string[] = ['assistant.text_added', 'assistant.thinking_added'];
const ENDS: readonly string[] = ['run.completed', 'run.failed', 'run.cancelled', 'run.expired'];

/** The extended log, with all deltas. */
const logOf = (events: readonly StoredEvent[]): MessageEntry[] =>
  events.flatMap((event) => toExtendedLogEntry(event) ?? []);

/** The stored messages, as read-messages.sql reads them: deltas only of steps that are open, or were open when the Run ended. */
function storedOf(events: readonly StoredEvent[]): MessageEntry[] {
  const read = events.filter((event, at) => {
    if (!DELTAS.includes(event.type)) return EVENT_TYPES[event.type].inMessages;
    const rest = events.slice(at).filter(({ runId, type }) => runId === event.runId && !DELTAS.includes(type));
    const next = rest.find(({ type }) => EVENT_TYPES[type].openStep === 'clears' || ENDS.includes(type));
    return next === undefined || ENDS.includes(next.type);
  });
  return read.flatMap((event) => toMessageEntries(event));
}

/** Leaves out the thinking of earlier releases, which stored it only as deltas. */
function comparable({ messages }: ThreadMessages) {
  return messages.map((message: Message) => {
    const parts = message.parts.filter((part) => part.type !== 'thinking' || part.stepId !== undefined);
    return { ...message, parts };
  });
}

test('the stored messages of 1,000 random logs give the same messages as the logs', () => {
  const seen = new Map<string, number>();
  const holds = fc.property(anyChances, anyEnd, (chances, end) => {
    const events = commitsUntil(new RandomLog(chances).events, end);
    const stored = reduceThread(storedOf(events));
    expect(comparable(stored)).toEqual(comparable(reduceThread(logOf(events))));
    for (const message of stored.messages) {
      const kinds = message.parts.map((part) => (part.type === 'tool_call' ? `tool ${part.state}` : part.type));
      const approvals = message.parts.map((part) => part.type === 'tool_call' && (part.approval?.state ?? 'not asked'));
      const status = message.role === 'user' ? 'user' : message.status;
      for (const kind of [status, ...kinds, ...approvals]) seen.set(`${kind}`, (seen.get(`${kind}`) ?? 0) + 1);
    }
  });
  fc.assert(holds, { ...randomRuns(LOGS), endOnFailure: true });
  for (const kind of OFTEN) expect([kind, (seen.get(kind) ?? 0) > LOGS / 200]).toEqual([kind, true]);
});

/** The cases that the random logs must contain; without them the test would prove nothing. */
const OFTEN = [
  ...['user', 'running', 'completed', 'failed', 'cancelled', 'expired', 'text', 'thinking', 'file'],
  ...['tool waiting', 'tool running', 'tool completed', 'tool stopped'],
  ...['pending', 'allowed', 'rejected', 'withdrawn', 'not asked'],
];

/** The end of a log: none, after a number of events, or where a Run last waits. Runs wait too briefly to be found by chance. */
const anyEnd = fc.oneof(
  { weight: 8, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.nat(100) },
  { weight: 1, arbitrary: fc.constant('waiting' as const) },
);

/** Returns the events of the first appends. The random log has one time per append. */
function commitsUntil(events: readonly StoredEvent[], end: number | 'waiting' | null): StoredEvent[] {
  const at = end === 'waiting' ? events.findLast(({ type }) => type === 'run.waiting') : events[end ?? Infinity];
  return events.filter(({ occurredAt }) => at === undefined || occurredAt <= at.occurredAt);
}

test('a fold that continues entry by entry gives the same messages, and keeps the unchanged ones', () => {
  const holds = fc.property(anyChances, (chances) => {
    const entries = logOf(new RandomLog(chances).events);
    let view: ThreadMessages = freeze(reduceThread([]));
    for (const entry of entries) {
      const next = freeze(reduceThread([entry], view));
      const isIn = new Set<object>(view.messages);
      // An entry changes at most one message.
      expect(next.messages.filter((message) => !isIn.has(message)).length).toBeLessThanOrEqual(1);
      view = next;
    }
    expect(view.messages).toEqual(reduceThread(entries).messages);
  });
  fc.assert(holds, { ...randomRuns(100), endOnFailure: true });
});

/** Makes a change of an earlier result throw. */
function freeze(view: ThreadMessages): ThreadMessages {
  for (const { parts } of view.messages) parts.forEach((part) => Object.freeze(part));
  for (const message of view.messages) Object.freeze(Object.freeze(message).parts);
  Object.freeze(view.messages);
  return Object.freeze(view);
}

test('an event of unexpected shape gives no text, and the fold continues', () => {
  const [event] = new RandomLog([]).events;
  const broken = (data: unknown) => ({ ...event, type: 'assistant.message_added', runId: 'R', attempt: 1, data });
  for (const data of [null, 'text', {}, { text: 7, thinking: [], step: 'x' }]) {
    const entries = toMessageEntries(broken(data) as unknown as StoredEvent);
    expect(reduceThread(entries).messages).toEqual([]);
  }
});
