import type { ThreadEventLogEntry as LogEntry } from '#contract';
import { addEarlier, addNewer, EMPTY_WINDOW, HELD_ENTRIES, type LogWindow } from './log-window.ts';

const idOf = (number: number) => String(number).padStart(26, '0');
const entries = (from: number, to: number): LogEntry[] =>
  Array.from(
    { length: to - from + 1 },
    (_, i) => ({ id: idOf(from + i), type: 'user.message', runId: null }) as LogEntry,
  );
const span = ({ entries: held, conversation }: LogWindow) => {
  expect(conversation.messages.map(({ id }) => id)).toEqual(held.map(({ id }) => id));
  return [held[0]?.id, held.at(-1)?.id, held.length];
};

test('addNewer ignores entries that the window holds', () => {
  const window = addNewer(addNewer(EMPTY_WINDOW, entries(1, 5)), entries(3, 7));
  expect(window.entries).toEqual(entries(1, 7));
  expect(addNewer(window, entries(2, 7))).toBe(window);
});

test('addNewer drops the oldest entries beyond the limit, and the window no longer reaches the start', () => {
  const full = addNewer({ ...EMPTY_WINDOW, reachesStart: true }, entries(1, HELD_ENTRIES + 500));
  expect(full.reachesStart).toBe(true);
  const over = addNewer(full, entries(HELD_ENTRIES + 501, HELD_ENTRIES + 501));
  expect(span(over)).toEqual([idOf(502), idOf(HELD_ENTRIES + 501), HELD_ENTRIES]);
  expect(over.reachesStart).toBe(false);
});

test('addEarlier raises the limit, so that no entry is dropped', () => {
  const held = addNewer(EMPTY_WINDOW, entries(1_001, 6_000));
  const more = addEarlier(held, entries(1, 1_000), { before: idOf(1_001), reachesStart: true });
  expect(span(more)).toEqual([idOf(1), idOf(6_000), 6_000]);
  expect(more).toMatchObject({ reachesStart: true, limit: HELD_ENTRIES + 1_000 });
  expect(span(addNewer(more, entries(6_001, 6_400)))).toEqual([idOf(1), idOf(6_400), 6_400]);
});

test('addEarlier changes nothing if the earlier entries would leave a gap', () => {
  const held = addNewer(EMPTY_WINDOW, entries(11, 20));
  expect(addEarlier(held, entries(1, 9), { before: idOf(10), reachesStart: true })).toBe(held);
});
