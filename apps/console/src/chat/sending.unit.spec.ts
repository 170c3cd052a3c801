import type { Message } from '#client';
import { SENDING_ID, withSending } from './sending.ts';

const message = (id: string, text: string, runId: string | null = null): Message => ({
  ...{ id, role: 'user', runId, createdAt: '2026-01-01T00:00:00.000Z' },
  parts: [{ type: 'text', text, state: 'done' }],
});
const idsOf = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);

const before = [message('1', 'Hello')];
const sending = { text: 'Hello', known: new Set(['1']), runId: null };

test('shows a message at once, also one that repeats an earlier text', () => {
  expect(idsOf(withSending(before, sending))).toEqual(['1', SENDING_ID]);
});

test('shows it once when the stream is faster than the response', () => {
  expect(idsOf(withSending([...before, message('2', 'Hello', 'R')], sending))).toEqual(['1', '2']);
});

test('knows it by its Run where the service has changed the text', () => {
  const sent = { ...sending, text: ' Hello ', runId: 'R' };
  expect(idsOf(withSending(before, sent))).toEqual(['1', SENDING_ID]);
  expect(idsOf(withSending([...before, message('2', 'Hello', 'R')], sent))).toEqual(['1', '2']);
});

test('returns the same messages when nothing is sent', () => {
  expect(withSending(before, null)).toBe(before);
});
