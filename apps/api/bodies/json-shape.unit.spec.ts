import { JsonShape } from './json-shape.ts';

/** Checks the text in chunks of this many bytes. */
function check(text: string, partBytes = Infinity): string | null {
  const shape = new JsonShape();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += partBytes) {
    const problem = shape.add(bytes.subarray(at, at + partBytes));
    if (problem !== null) return problem;
  }
  return null;
}

const TOO_DEEP = 'body: must not be nested deeper than 32';
const TOO_WIDE = 'body: must have at most 2000 fields in one object';
const TOO_MANY = 'body: must have at most 50000 values';

it.each([
  ['a list that is too deep', '['.repeat(33), TOO_DEEP],
  ['objects that are too deep', '{"a":'.repeat(33), TOO_DEEP],
  ['the deepest list that is allowed', '['.repeat(32) + ']'.repeat(32), null],
  ['lists beside each other', `[${'[],'.repeat(20_000)}[]]`, null],
  ['too many numbers', `[${'1,'.repeat(50_000)}1]`, TOO_MANY],
  ['too many fields', `{"a":[{}],${'"a":1,'.repeat(1_999)}"a":1}`, TOO_WIDE],
  ['two objects with the largest number of fields', `[${`{${'"a":[1,2],'.repeat(1_999)}"a":1},`.repeat(2)}1]`, null],
  ['more closing brackets than opening ones', `}}]${','.repeat(3_000)}`, null],
  ['too many empty lists', `[${'[],'.repeat(25_000)}[]]`, TOO_MANY],
  ['brackets and commas within a string', JSON.stringify(['[,{'.repeat(60_000)]), null],
  ['escaped quotes before brackets', JSON.stringify(['"['.repeat(60_000)]), null],
  ['backslashes at the end of strings', JSON.stringify(Array(100).fill('\\')) + '['.repeat(40), TOO_DEEP],
  ['the largest batch of events', JSON.stringify(largestBatch()), null],
])('checks %s', (_, text, expected) => {
  for (const partBytes of [Infinity, 64 * 1024, 7]) expect(check(text, partBytes)).toBe(expected);
});

/** 100 messages with 100 files each. */
function largestBatch(): object {
  const resources = Array.from({ length: 100 }, () => ({ type: 'file', file_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }));
  return {
    events: Array.from({ length: 100 }, () => ({ type: 'user_message', text: 'x', requestId: 'r', resources })),
  };
}
