import { SlotUsage } from './slot-usage.ts';

const inUse = (organizationId: string, slots: number, seconds = slots) => ({ organizationId, slots, seconds });

it('sums slot-seconds, and forgets them after a minute', () => {
  const usage = new SlotUsage();
  usage.add(0, [inUse('A', 8)]);
  for (let second = 1; second <= 30; second++) usage.add(second * 1_000, [inUse('A', 8), inUse('B', 1)]);
  expect([usage.secondsOf('A'), usage.secondsOf('B'), usage.secondsOf('C')]).toEqual([240, 30, 0]);
  for (let second = 31; second <= 75; second++) usage.add(second * 1_000, [inUse('B', 1)]);
  expect(usage.secondsOf('A')).toBeCloseTo(15 * 8);
  expect(usage.secondsOf('B')).toBeCloseTo(60);
  for (let second = 76; second <= 200; second++) usage.add(second * 1_000, []);
  expect([usage.secondsOf('A'), usage.secondsOf('B')]).toEqual([0, 0]);
});

it('counts nothing for a long pause between samples', () => {
  const usage = new SlotUsage();
  usage.add(0, []);
  usage.add(30_000, [inUse('A', 8)]);
  expect(usage.secondsOf('A')).toBe(0);
});

it('estimates the length of a Run from the age of the Runs under way, within bounds', () => {
  const usage = new SlotUsage();
  expect(usage.runSeconds).toBe(1);
  usage.add(0, [inUse('A', 3, 6), inUse('B', 1, 2)]);
  expect(usage.runSeconds).toBe(4);
  usage.add(1_000, [inUse('A', 1, 3_600)]);
  expect(usage.runSeconds).toBe(60);
  usage.add(2_000, []);
  expect(usage.runSeconds).toBe(60);
});
