import fc from 'fast-check';
import { storableText } from '#domain';
import { measureTurns } from '#testing';
import { cutUtf8, mapTexts, splitUtf8, StorableDeltas } from './stored-text.ts';

it.each([
  ['abc', 3, 'abc', ''],
  ['abc', 2, 'ab', 'c'],
  ['ä😀b', 1, '', 'ä😀b'],
  ['ä😀b', 2, 'ä', '😀b'],
  ['ä😀b', 5, 'ä', '😀b'],
  ['ä😀b', 6, 'ä😀', 'b'],
])('%j in %d bytes is %j and %j', (text, maxBytes, head, rest) => {
  expect(splitUtf8(text, maxBytes)).toEqual([head, rest]);
});

it('marks a cut text within the limit', () => {
  expect(cutUtf8('abcdef', 6, '…')).toBe('abcdef');
  expect(cutUtf8('abcdefg', 6, '…')).toBe('abc…');
});

it('changes every text in an object and nothing else', () => {
  const value = { a: 'x', b: ['x', { x: 'x' }, 1, null, true], c: { d: {} } };
  const changed = { a: 'y', b: ['y', { y: 'y' }, 1, null, true], c: { d: {} } };
  expect(mapTexts(value, (text) => text.replaceAll('x', 'y'))).toEqual(changed);
});

const jsonObject = fc.dictionary(fc.string(), fc.jsonValue());

it('maps random objects like their copies', () => {
  const change = (text: string) => text.replaceAll('a', 'bb');
  const mapSlowly = (value: unknown): unknown => {
    if (typeof value === 'string') return change(value);
    if (Array.isArray(value)) return value.map(mapSlowly);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [change(name), mapSlowly(field)]));
  };
  fc.assert(
    fc.property(jsonObject, (value) => {
      const before = JSON.stringify(value);
      expect(JSON.stringify(mapTexts(value, change))).toBe(JSON.stringify(mapSlowly(value)));
      expect(JSON.stringify(value)).toBe(before);
      expect(mapTexts(value, (text) => text)).toBe(value);
    }),
  );
});

it('changes the largest input of a tool', async () => {
  const fields = Object.fromEntries(Array.from({ length: 24_999 }, (_, i) => [`key ${i}`, `${i}`]));
  const input = { ...fields, half: '\uD800' };
  await measureTurns(() => mapTexts(input, storableText), { maxMs: 50 });
  expect(mapTexts(input, storableText)).toEqual({ ...fields, half: '\uFFFD' });
});

it('splits random texts as bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 4, max: 40 }), (text, maxBytes) => {
      const [head, rest] = splitUtf8(text, maxBytes);
      expect(head + rest).toBe(text);
      expect(Buffer.byteLength(head)).toBeLessThanOrEqual(maxBytes);
      const [next = ''] = rest;
      if (rest !== '') expect(Buffer.byteLength(head + next)).toBeGreaterThan(maxBytes);
    }),
  );
});

it('joins split surrogate pairs, and replaces lone surrogates', () => {
  const deltas = new StorableDeltas();
  const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];
  expect(deltas.push(`a${high}`)).toBe('a');
  expect(deltas.push(`${low}b\0`)).toBe('😀b');
  expect(deltas.push(low)).toBe('\uFFFD');
  expect(deltas.push(high) + deltas.push('c')).toBe('\uFFFDc');
  expect(deltas.push(high) + deltas.end()).toBe('\uFFFD');
});
