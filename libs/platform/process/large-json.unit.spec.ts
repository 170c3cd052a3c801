import { hash } from 'node:crypto';
import { measureTurns, nightTest } from '#testing';
import { isLargeJson, jsonSteps, largeJson } from './large-json.ts';

const MIB = 1024 * 1024;

const values: [string, unknown][] = [
  ['an empty object and list', { a: {}, b: [] }],
  ['fields without a value', { a: undefined, b: null, c: [undefined, 1] }],
  ['a date', { at: new Date(0) }],
  ['names and texts with escapes', { 'a"\n': '\u0001"\\\n\u2028é😀\ud800' }],
  ['a text of several steps', { text: `"${'é\n'.repeat(200_000)}`, next: 'x' }],
  ['pairs of surrogates at each place', ['😀'.repeat(200_000), `x${'😀'.repeat(200_000)}`, '\ud800'.repeat(150_000)]],
  ['many values', Array.from({ length: 50_000 }, (_, i) => ({ [`name ${i}`]: i, list: [true, false, null, 1.5] }))],
  ['a field named toJSON', { toJSON: 1, b: 'x'.repeat(300_000) }],
  ['a text alone', 'x'.repeat(300_000)],
  ['nothing', null],
];

it.each(values)('writes %s as JSON.stringify does', async (_, value) => {
  expect(hash('sha256', await largeJson(value))).toBe(hash('sha256', Buffer.from(JSON.stringify(value))));
});

it('sorts fields at every depth', async () => {
  let text = '';
  for await (const step of jsonSteps({ b: [{ d: 1, c: 2 }], a: undefined, '': 0 }, { sorted: true })) text += step;
  expect(text).toBe('{"":0,"b":[{"c":2,"d":1}]}');
});

it('distinguishes large values from small ones', () => {
  expect([{ text: 'x'.repeat(100_000) }, { list: Array(5_000).fill(1) }].map(isLargeJson)).toEqual([false, false]);
  const large = [{ a: [{ text: 'x'.repeat(150_000) }] }, Array(20_000).fill('x'), { list: Array(1_000_000).fill(0) }];
  expect(large.map(isLargeJson)).toEqual([true, true, true]);
});

nightTest('writes 8 MiB of text without holding the event loop', async () => {
  const value = { text: 'é"\n'.repeat((8 * MIB) / 3) };
  await measureTurns(() => largeJson(value), { maxMs: 50 });
});
