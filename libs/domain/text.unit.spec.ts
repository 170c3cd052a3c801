import fc from 'fast-check';
import { measureTurns, nightTest } from '#testing';
import { randomRuns } from './random.testing.ts';
import { beginningOf, isStorable, storableText } from './text.ts';

test.each([
  ['plain 😀 \n\t', 'plain 😀 \n\t'],
  ['a\0b\0', 'ab'],
  ['half \uD83D', 'half \uFFFD'],
  ['\uDE00 the other half', '\uFFFD the other half'],
  ['\uDE00\uD83D turned round', '\uFFFD\uFFFD turned round'],
  ['\uD83D\0\uDE00 parted', '😀 parted'],
])('stores %j as %j', (text, stored) => {
  expect(storableText(text)).toBe(stored);
  expect(isStorable(text)).toBe(text === stored);
});

test.each([
  ['abc', 2, 'ab'],
  ['abc', 3, 'abc'],
  ['abc', 9, 'abc'],
  ['a😀b', 2, 'a'],
  ['a😀b', 3, 'a😀'],
  ['a😀', 3, 'a😀'],
  ['', 5, ''],
])('the beginning of %j of at most %i units is %j', (text, length, beginning) => {
  expect(beginningOf(text, length)).toBe(beginning);
});

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) });
const oddText = fc.string({ unit: fc.constantFrom('\0', '\uD83D', '\uDE00', 'a') });

test('storable text has no NUL, and has U+FFFD for each lone surrogate', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, oddText), (text) => {
      expect(storableText(text)).toBe(text.replaceAll('\0', '').replace(/\p{Surrogate}/gu, '\uFFFD'));
    }),
    randomRuns(1_000),
  );
});

nightTest('storable text of 1 MiB takes a short turn with any content', async () => {
  for (const hostile of ['\0', '\uD83D', '\0a', '\uDE00\uD83D', '😀', 'a']) {
    const text = hostile.repeat((1024 * 1024) / hostile.length);
    await measureTurns(() => [storableText(text), isStorable(text)], { maxMs: 20 });
  }
});

test('text is storable after storableText, and a second call changes nothing', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, oddText), (text) => {
      const stored = storableText(text);
      expect(Buffer.from(stored).toString()).toBe(stored);
      expect(stored).not.toContain('\0');
      expect(isStorable(stored)).toBe(true);
      expect(storableText(stored)).toBe(stored);
      expect(isStorable(text)).toBe(stored === text);
    }),
    randomRuns(1_000),
  );
});
