import { decodePlace, encodePlace } from './page-cursor.ts';

const place = { updatedAt: '2026-11-21T05:50:08.120Z', threadId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' };

test('a cursor is what it was made of', () => {
  expect(decodePlace(encodePlace(place))).toEqual(place);
});

test.each([
  '',
  'abc',
  'ü',
  place.threadId,
  encodePlace({ ...place, threadId: 'x' }),
  encodePlace({ ...place, updatedAt: '2026-13-21T05:50:08.120Z' }),
  encodePlace({ ...place, updatedAt: '2026-02-31T05:50:08.120Z' }),
  encodePlace({ ...place, updatedAt: '0000-01-01T00:00:00.000Z' }),
  `${encodePlace(place)}AAAA`,
])('%j is none', (cursor) => {
  expect(decodePlace(cursor)).toBeNull();
});
