import { throttledWarn } from './throttled-warn.ts';
import { memoizeWithTtl } from './memoize-with-ttl.ts';
import { jobIdOf, windowOf } from './run-queue.ts';
import { pino } from 'pino';

it('names a job after the Run and its dispatch', () => {
  expect(jobIdOf({ runId: '01ARZ3NDEKTSV4RRFFQ69G5FAV', threadId: 'T', dispatch: 3 })).toBe(
    '01ARZ3NDEKTSV4RRFFQ69G5FAV-3',
  );
});

it.each([
  [0, 16],
  [8, 16],
  [9, 18],
  [1_000, 2_000],
])('has for %d slots a window of %d jobs', (slots, jobs) => {
  expect(windowOf(slots)).toBe(jobs);
});

describe('memoizeWithTtl', () => {
  it('loads once for concurrent callers, and again when the value is too old', async () => {
    const clock = { now: 0 };
    const load = jest.fn(async () => clock.now);
    const value = memoizeWithTtl(250, load, () => clock.now);
    expect(await Promise.all([value.get(), value.get()])).toEqual([0, 0]);
    clock.now = 249;
    expect(await value.get()).toBe(0);
    clock.now = 250;
    expect(await value.get()).toBe(250);
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('loads again after `forget` and after a failed load', async () => {
    const load = jest
      .fn<Promise<number>, []>()
      .mockResolvedValueOnce(1)
      .mockRejectedValueOnce(new Error('unavailable'));
    load.mockResolvedValueOnce(3);
    const value = memoizeWithTtl(250, load, () => 0);
    expect(await value.get()).toBe(1);
    value.forget();
    await expect(value.get()).rejects.toThrow('unavailable');
    expect(await value.get()).toBe(3);
  });
});

it('logs a repeated failure at most every five seconds, with the number of failures', () => {
  const lines: string[] = [];
  const clock = { now: 0 };
  const warn = throttledWarn(pino({}, { write: (line: string) => void lines.push(line) }), () => clock.now);
  for (clock.now = 0; clock.now < 10_000; clock.now += 100) warn(new Error('broken pipe'), 'the connection broke');
  const logged = lines.map((line) => JSON.parse(line) as { msg: string; times: number; err: { message: string } });
  expect(logged.map(({ times }) => times)).toEqual([1, 50]);
  expect(logged[0]).toMatchObject({ msg: 'the connection broke', err: { message: 'broken pipe' } });
});
