import { JsonShape, MessageTooComplex } from './json-shape.ts';

const take = (kind: 'line' | 'event' | 'body', ...pieces: string[]): void => {
  const shape = new JsonShape(kind);
  for (const piece of pieces) shape.take(Buffer.from(piece));
};
const deep = '['.repeat(129);
const wide = `[${'1,'.repeat(50_000)}1]`;

it.each([
  ['levels', [deep]],
  ['levels in pieces', ['['.repeat(100), '['.repeat(100)]],
  ['parts', [wide]],
  ['parts in lines of one body', [wide.slice(0, 60_000), '\n', wide.slice(60_000)]],
  ['levels after an escaped quotation mark', [`"\\"${'a'}"${deep}`]],
  ['levels behind a quotation mark in another line', [`: "\ndata: ${deep}`]],
])('throws on too many %s', (_what, pieces) => {
  expect(() => take('body', ...pieces)).toThrow(MessageTooComplex);
});

it('counts the parts of a message that ends with its piece', () => {
  expect(() => take('line', `${wide}\n`)).toThrow(MessageTooComplex);
});

it.each([
  ['brackets in a text', 'body', [`{"a":"${'['.repeat(200_000)}"}`]],
  ['brackets behind an escaped quotation mark', 'body', [`{"a":"\\"${'['.repeat(200)}"}`]],
  ['many lines that are messages of their own', 'line', [`${'[1,2]\n'.repeat(50_000)}`]],
  ['many events', 'event', ['data: [1,2,3]\r\n\r\n'.repeat(50_000)]],
] as const)('takes %s', (_what, kind, pieces) => {
  expect(() => take(kind, ...pieces)).not.toThrow();
});

it('counts lines of one event together', () => {
  expect(() => take('event', 'data: [[[[[[[[[[\r\n'.repeat(13))).toThrow(MessageTooComplex);
});
