import { measureTurns, nightTest } from '#testing';
import { deriveTitle, MAX_PREVIEW, previewOf } from './title.ts';

const FAMILY = '👩‍👩‍👧';

test.each([
  ['the first line', 'Hello there\nand more', 'Hello there'],
  ['the first line that says something', '\n \t\n  Hello\nmore', 'Hello'],
  ['white space collapsed', '  a \t b\u00A0\u3000c  ', 'a b c'],
  ['lines of every kind', 'a\r\nb', 'a'],
  ['an old Mac’s line', 'a\rb', 'a'],
  ['a line separator', 'a\u2028b', 'a'],
  ['80 characters', 'x'.repeat(80), 'x'.repeat(80)],
  ['81 are cut', 'x'.repeat(81), `${'x'.repeat(79)}…`],
  ['80 that are 160 UTF-16 units', '😀'.repeat(80), '😀'.repeat(80)],
  ['81 of those are cut, none in half', '😀'.repeat(81), `${'😀'.repeat(79)}…`],
  ['no white space before the cut', `${'x'.repeat(78)} yyy`, `${'x'.repeat(78)}…`],
  ['white space counts after it is collapsed', `a${' '.repeat(100)}b`, 'a b'],
  ['other scripts', 'Приветствие — 你好', 'Приветствие — 你好'],
  ['what is joined stays joined', FAMILY, FAMILY],
  ['no half of a character where the message is cut', `a${' '.repeat(32 * 1024 - 2)}😀`, 'a'],
  ['without provider-private citations', 'See \uE200cite\uE202turn0\uE201this', 'See this'],
  ['nothing', '', null],
  ['only white space', ' \n\t\u2028 ', null],
])('%s', (_what, text, title) => {
  expect(deriveTitle(text)).toBe(title);
});

test.each([
  ['all its lines in one', ' a\n\tb\r\nc ', 'a b c'],
  ['nothing of only white space', ' \n ', ''],
  ['the longest', 'x'.repeat(MAX_PREVIEW), 'x'.repeat(MAX_PREVIEW)],
  ['a longer one, cut', '😀'.repeat(MAX_PREVIEW + 1), `${'😀'.repeat(MAX_PREVIEW - 1)}…`],
  ['no provider-private citations', 'See \uE200cite\uE202turn0\uE201this', 'See this'],
])('a preview shows %s', (_what, text, preview) => {
  expect(previewOf(text)).toBe(preview);
});

test('is 80 characters long where it was cut', () => {
  expect(Array.from(deriveTitle('word '.repeat(100)) ?? '').length).toBeLessThanOrEqual(80);
  expect(Array.from(deriveTitle('w'.repeat(1_000)) ?? '')).toHaveLength(80);
});

nightTest('looks at the beginning of a long message only', async () => {
  const texts = ['a ', '😀', '\uE200', '\uE200\uE201', '\uE200cite\uE202x\uE201'].map((piece) =>
    piece.repeat(4_000_000 / piece.length),
  );
  const shorten = (): void => {
    for (const text of texts) previewOf(text);
    for (const text of texts) deriveTitle(text);
  };
  await measureTurns(shorten, { maxMs: 50 });
});
