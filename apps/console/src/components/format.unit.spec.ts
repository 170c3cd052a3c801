import { counted, formatAgo, formatBytes, formatDuration, formatTime, shortenId } from './format.ts';

test.each([
  [0, '0 ms'],
  [-5, '0 ms'],
  [999, '999 ms'],
  [1_000, '1.0 s'],
  [9_949, '9.9 s'],
  [9_950, '10 s'],
  [59_499, '59 s'],
  [59_500, '1 min'],
  [185_000, '3 min 5 s'],
  [3_600_000, '1 h'],
  [5_400_000, '1 h 30 min'],
  [187_200_000, '2 d 4 h'],
])('%d ms is %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

const NOW = Date.UTC(2026, 10, 22, 12);
test.each([
  [NOW - 4_999, 'just now'],
  [NOW - 5_000, '5 s ago'],
  [NOW - 119_000, '1 min ago'],
  [NOW - 47 * 3_600_000, '47 h ago'],
  [NOW - 48 * 3_600_000, '2 d ago'],
  [NOW + 61_000, 'in 2 min'],
  [NOW + 90 * 86_400_000 - 1, 'in 90 d'],
])('%d is %s', (at, text) => expect(formatAgo(at, NOW)).toBe(text));

test.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_536, '1.5 KiB'],
  [10 * 1_024 ** 2, '10 MiB'],
  [3 * 1_024 ** 5, '3072 TiB'],
])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

it('writes a time to the second, with its zone', () => {
  expect(formatTime('2026-11-22T09:31:04.900Z')).toMatch(/^2026-11-2[123] \d\d:\d\d:04 \S+$/);
});

it('counts a noun', () => {
  expect([counted(1, 'Run'), counted(0, 'Run'), counted(12_000, 'Run')]).toEqual(['1 Run', '0 Runs', '12,000 Runs']);
});

it('keeps an id that is short, and both ends of one that is long', () => {
  expect([shortenId('01M81B4A3F96PK'), shortenId('01M81B4A3F96PKTFKRY8DAVA4S')]).toEqual([
    '01M81B4A3F96PK',
    '01M8…DAVA4S',
  ]);
});
