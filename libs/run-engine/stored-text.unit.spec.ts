import { cutUtf8, mapTexts, splitUtf8, StorablePieces } from './stored-text.ts';

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

it('marks what it cut, within the limit', () => {
  expect(cutUtf8('abcdef', 6, '…')).toBe('abcdef');
  expect(cutUtf8('abcdefg', 6, '…')).toBe('abc…');
});

it('changes every text in an object and nothing else', () => {
  const value = { a: 'x', b: ['x', { x: 'x' }, 1, null, true], c: { d: {} } };
  const changed = { a: 'y', b: ['y', { y: 'y' }, 1, null, true], c: { d: {} } };
  expect(mapTexts(value, (text) => text.replaceAll('x', 'y'))).toEqual(changed);
});

it('joins characters that were cut in two, and replaces halves that stay alone', () => {
  const pieces = new StorablePieces();
  const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];
  expect(pieces.push(`a${high}`)).toBe('a');
  expect(pieces.push(`${low}b\0`)).toBe('😀b');
  expect(pieces.push(low)).toBe('\uFFFD');
  expect(pieces.push(high) + pieces.push('c')).toBe('\uFFFDc');
  expect(pieces.push(high) + pieces.end()).toBe('\uFFFD');
});
