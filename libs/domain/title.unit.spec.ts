import { measureTurns, nightTest } from '#testing';
import { deriveTitle, MAX_PREVIEW, previewOf } from './title.ts';

const FAMILY = '👩‍👩‍👧';

test.each([
  ['the first line', 'Hello there\nand more', 'Hello there'],
  ['the first line with text', '\n \t\n  Hello\nmore', 'Hello'],
  ['white space collapsed', '  a \t b\u00A0\u3000c  ', 'a b c'],
  ['lines of every kind', 'a\r\nb', 'a'],
  ['a carriage return', 'a\rb', 'a'],
  ['a line separator', 'a\u2028b', 'a'],
  ['80 characters', 'x'.repeat(80), 'x'.repeat(80)],
  ['81 characters, cut', 'x'.repeat(81), `${'x'.repeat(79)}…`],
  ['80 characters of 160 UTF-16 units', '😀'.repeat(80), '😀'.repeat(80)],
  ['81 characters of 162 UTF-16 units, cut between characters', '😀'.repeat(81), `${'😀'.repeat(79)}…`],
  ['no white space before the cut', `${'x'.repeat(78)} yyy`, `${'x'.repeat(78)}…`],
  ['white space is collapsed before it is counted', `a${' '.repeat(100)}b`, 'a b'],
  ['other scripts', 'Приветствие — 你好', 'Приветствие — 你好'],
  ['joined emoji', FAMILY, FAMILY],
  ['no lone surrogate where the message is cut', `a${' '.repeat(32 * 1024 - 2)}😀`, 'a'],
  ['no provider-private citations', 'See \uE200cite\uE202turn0\uE201this', 'See this'],
  ['an empty message', '', null],
  ['only white space', ' \n\t\u2028 ', null],
])('a title: %s', (_what, text, title) => {
  expect(deriveTitle(text)).toBe(title);
});

test.each([
  ['all its lines in one', ' a\n\tb\r\nc ', 'a b c'],
  ['nothing for only white space', ' \n ', ''],
  ['the longest text that fits', 'x'.repeat(MAX_PREVIEW), 'x'.repeat(MAX_PREVIEW)],
  ['a longer text, cut', '😀'.repeat(MAX_PREVIEW + 1), `${'😀'.repeat(MAX_PREVIEW - 1)}…`],
  ['no provider-private citations', 'See \uE200cite\uE202turn0\uE201this', 'See this'],
])('a preview shows %s', (_what, text, preview) => {
  expect(previewOf(text)).toBe(preview);
});

test('a cut title has at most 80 characters', () => {
  expect(Array.from(deriveTitle('word '.repeat(100)) ?? '').length).toBeLessThanOrEqual(80);
  expect(Array.from(deriveTitle('w'.repeat(1_000)) ?? '')).toHaveLength(80);
});

nightTest('reads only the beginning of a long message', async () => {
  const texts = ['a ', '😀', '\uE200', '\uE200\uE201', '\uE200cite\uE202x\uE201'].map((piece) =>
    piece.repeat(4_000_000 / piece.length),
  );
  const shorten = (): void => {
    for (const text of texts) previewOf(text);
    for (const text of texts) deriveTitle(text);
  };
  await measureTurns(shorten, { maxMs: 50 });
});
