import { decodeTime, isValid } from 'ulid';
import { idFactory, newId } from './new-id.ts';

describe('ids', () => {
  test('are increasing ULIDs of the current time, across several draws of random bytes', () => {
    const from = Date.now();
    const ids = Array.from({ length: 10_000 }, () => newId());
    expect(ids.every(isValid)).toBe(true);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(decodeTime(ids[0]!)).toBeGreaterThanOrEqual(from);
  });

  test('increase even if the clock steps back', () => {
    const ids = idFactory();
    const last = ids(2_000);
    expect(ids(1_000) > last).toBe(true);
  });

  test('use each of the 32 digits about equally often', () => {
    const ids = idFactory();
    const counts = new Map<string, number>();
    // A different millisecond for each id, so that each uses new random bytes.
    for (let now = 0; now < 20_000; now++) {
      for (const digit of ids(now + 1).slice(10)) counts.set(digit, (counts.get(digit) ?? 0) + 1);
    }
    expect(counts.size).toBe(32);
    // 10,000 expected of each; the standard deviation is 98.
    for (const count of counts.values()) expect(Math.abs(count - 10_000)).toBeLessThan(700);
  });
});
