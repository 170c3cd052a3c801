import fc from 'fast-check';
import { monotonicFactory, ulid } from 'ulid';
import { followingId, incrementUlid, parseUlid, ULID_PATTERN } from './ids.ts';
import { randomRuns } from './random.testing.ts';

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const HIGHEST = `7${'Z'.repeat(25)}`;
const digit = (digits: string) => fc.constantFrom(...digits);
const anyUlid = fc
  .tuple(digit('01234567'), fc.array(digit('0123456789ABCDEFGHJKMNPQRSTVWXYZ'), { minLength: 25, maxLength: 25 }))
  .map(([first, rest]) => first + rest.join(''));

describe('parseUlid', () => {
  test('returns upper case for either case', () => {
    expect(parseUlid(ID)).toBe(ID);
    expect(parseUlid(ID.toLowerCase())).toBe(ID);
  });

  test.each(['', ID.slice(1), `${ID}0`, `8${ID.slice(1)}`, ...[...'ILOUilou'].map((letter) => ID.slice(1) + letter)])(
    'returns null for %j',
    (text) => expect(parseUlid(text)).toBeNull(),
  );

  test.each([`${ID}\n`, ` ${ID.slice(1)}`, ID.replace('A', 'Ａ'), ID.replace('Z', 'ſ')])(
    'returns null for %j',
    (text) => {
      expect(parseUlid(text)).toBeNull();
    },
  );
});

describe('incrementUlid', () => {
  test.each([
    [ID, '01ARZ3NDEKTSV4RRFFQ69G5FAW'],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAH', '01ARZ3NDEKTSV4RRFFQ69G5FAJ'],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAZ', '01ARZ3NDEKTSV4RRFFQ69G5FB0'],
    ['01ARZ3NDEKZZZZZZZZZZZZZZZZ', '01ARZ3NDEM0000000000000000'],
    ['0ZZZZZZZZZZZZZZZZZZZZZZZZZ', '10000000000000000000000000'],
  ])('%s is followed by %s', (id, next) => {
    expect(incrementUlid(id)).toBe(next);
  });

  test('returns the next ULID in the order of text', () => {
    fc.assert(
      fc.property(anyUlid, (id) => {
        fc.pre(id !== HIGHEST);
        const next = incrementUlid(id);
        expect(next).toMatch(ULID_PATTERN);
        expect(valueOf(next)).toBe(valueOf(id) + 1n);
        expect(next > id).toBe(true);
      }),
      randomRuns(1_000),
    );
  });

  test.each([HIGHEST, ID.toLowerCase(), ID.slice(1), ''])('throws for %j', (id) => {
    expect(() => incrementUlid(id)).toThrow(RangeError);
  });
});

describe('followingId (I2)', () => {
  test('returns the candidate if it is higher, else one more than the last id', () => {
    expect(followingId(null, ID)).toBe(ID);
    expect(followingId(ID, HIGHEST)).toBe(HIGHEST);
    expect(followingId(ID, ID)).toBe('01ARZ3NDEKTSV4RRFFQ69G5FAW');
    expect(followingId(ID, '01ARZ3NDEKTSV4RRFFQ69G5FAT')).toBe('01ARZ3NDEKTSV4RRFFQ69G5FAW');
  });

  test('strictly increases for any clocks of two pods', () => {
    const HOUR = 3_600_000;
    const step = fc.record({ pod: fc.nat(1), ms: fc.integer({ min: -HOUR, max: HOUR }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        // Makes candidates as event-store does. The clock of one pod is ten minutes ahead.
        const newIds = [monotonicFactory(), monotonicFactory()];
        const clocks = [1_700_000_000_000, 1_700_000_600_000];
        let last: string | null = null;
        for (const { pod, ms } of steps) {
          clocks[pod] = (clocks[pod] ?? 0) + ms;
          const id = followingId(last, newIds[pod]?.(clocks[pod]) ?? ulid());
          expect(id).toMatch(ULID_PATTERN);
          if (last !== null) expect(id > last).toBe(true);
          last = id;
        }
      }),
      randomRuns(200),
    );
  });

  test('strictly increases for any candidates', () => {
    fc.assert(
      fc.property(fc.array(anyUlid, { minLength: 1 }), (candidates) => {
        let last: string | null = null;
        for (const candidate of candidates) {
          fc.pre(last !== HIGHEST);
          const id = followingId(last, candidate);
          if (last !== null) expect(id > last).toBe(true);
          last = id;
        }
      }),
      randomRuns(200),
    );
  });
});

function valueOf(id: string): bigint {
  return [...id].reduce((sum, letter) => sum * 32n + BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(letter)), 0n);
}
