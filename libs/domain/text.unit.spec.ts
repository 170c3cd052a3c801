import fc from 'fast-check';
import { randomRuns } from './random.testing.ts';
import { isStorable, storableText } from './text.ts';

test.each([
  ['plain 😀 \n\t', 'plain 😀 \n\t'],
  ['a\0b\0', 'ab'],
  ['half \uD83D', 'half \uFFFD'],
  ['\uDE00 the other half', '\uFFFD the other half'],
  ['\uDE00\uD83D turned round', '\uFFFD\uFFFD turned round'],
  ['\uD83D\0\uDE00 parted', '😀 parted'],
])('%j', (text, stored) => {
  expect(storableText(text)).toBe(stored);
  expect(isStorable(text)).toBe(text === stored);
});

test('what is made storable is, and stays as it is', () => {
  const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) });
  fc.assert(
    fc.property(fc.oneof(anyText, fc.string({ unit: fc.constantFrom('\0', '\uD83D', '\uDE00', 'a') })), (text) => {
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
