import { isNotModified } from './preconditions.ts';

const TAG = '"abc"';
type Headers = { 'if-match'?: string; 'if-none-match'?: string };

function evaluate(method: string, headers: Headers): 'proceed' | number {
  try {
    return isNotModified({ method, headers }, TAG) ? 304 : 'proceed';
  } catch (error) {
    expect(error).toMatchObject({ code: 'idempotency_conflict', headers: { ETag: TAG } });
    return (error as { status: number }).status;
  }
}

test.each<[Headers, read: 'proceed' | number, write: 'proceed' | number]>([
  [{}, 'proceed', 'proceed'],
  [{ 'if-match': '"abc"' }, 'proceed', 'proceed'],
  [{ 'if-match': '*' }, 'proceed', 'proceed'],
  [{ 'if-match': '"x", "abc" ,"y"' }, 'proceed', 'proceed'],
  [{ 'if-match': '"x"' }, 412, 412],
  [{ 'if-match': 'W/"abc"' }, 412, 412],
  [{ 'if-match': 'abc' }, 412, 412],
  [{ 'if-match': '' }, 412, 412],
  [{ 'if-none-match': '"abc"' }, 304, 412],
  [{ 'if-none-match': 'W/"abc"' }, 304, 412],
  [{ 'if-none-match': '*' }, 304, 412],
  [{ 'if-none-match': '"x", W/"y"' }, 'proceed', 'proceed'],
  // If-Match is evaluated first.
  [{ 'if-match': '"x"', 'if-none-match': '"abc"' }, 412, 412],
  [{ 'if-match': '"abc"', 'if-none-match': '"abc"' }, 304, 412],
])('%j: a read gets %p, a deletion %p', (headers, read, write) => {
  expect(['GET', 'HEAD', 'DELETE'].map((method) => evaluate(method, headers))).toEqual([read, read, write]);
});
