import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  eventuallyWithin,
  expectWithin,
  TooSlow,
  withinBounds,
  withoutPauses,
  type TimedTestRepeat,
} from './timed-test.ts';

/** Returns a body that reports these times one after the other, with a bound of 10 ms. */
function bodyTaking(...times: number[]) {
  const bodies = { tries: 0, again: 0, recorded: [] as TimedTestRepeat[] };
  const run = (): Promise<void> =>
    withinBounds(
      async () => expectWithin(10, times[bodies.tries++]!, 'it came after'),
      async () => void bodies.again++,
      (repeat) => void bodies.recorded.push(repeat),
    );
  return { bodies, run };
}

it('passes at the first time within the bound, and records the repeat before it', async () => {
  const { bodies, run } = bodyTaking(11, 10, 9);
  await run();
  const test = expect.getState().currentTestName;
  const message = 'it came after 11 ms (bound: 10 ms)';
  expect(bodies).toEqual({ tries: 2, again: 1, recorded: [{ test, message }] });
});

it('fails when the third time exceeds the bound, too', async () => {
  const { bodies, run } = bodyTaking(11, 12, 13, 1);
  await expect(run()).rejects.toThrow(new TooSlow('it came after 13 ms (bound: 10 ms)'));
  expect(bodies).toMatchObject({ tries: 3, again: 2 });
});

it('treats NaN as too slow', async () => {
  await expect(bodyTaking(NaN, NaN, NaN).run()).rejects.toThrow(TooSlow);
});

it('fails at once with any other error', async () => {
  let tries = 0;
  const body = async (): Promise<void> => {
    tries++;
    throw new Error('lost');
  };
  await expect(withinBounds(body)).rejects.toThrow('lost');
  expect(tries).toBe(1);
});

it('treats a condition that holds only after the bound as too slow', async () => {
  let asked = 0;
  const isSo = (): boolean => ++asked > 1;
  await expect(eventuallyWithin(0, isSo, 'it is so')).rejects.toThrow(TooSlow);
  expect(asked).toBe(2);
  await eventuallyWithin(1_000, isSo, 'it is so');
});

it('appends each repeat to the file that SPOOL_TIMED_TESTS_FILE names', async () => {
  const file = join(tmpdir(), `timed-tests-${process.pid}.jsonl`);
  const before = process.env.SPOOL_TIMED_TESTS_FILE;
  const stderr = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  process.env.SPOOL_TIMED_TESTS_FILE = file;
  try {
    const times = [12, 11, 10];
    await withinBounds(async () => expectWithin(10, times.shift()!, 'it came after'));
    const test = expect.getState().currentTestName;
    expect(readFileSync(file, 'utf8').trim().split('\n').map(asRepeat)).toEqual([
      { test, message: 'it came after 12 ms (bound: 10 ms)' },
      { test, message: 'it came after 11 ms (bound: 10 ms)' },
    ]);
  } finally {
    stderr.mockRestore();
    if (before === undefined) delete process.env.SPOOL_TIMED_TESTS_FILE;
    else process.env.SPOOL_TIMED_TESTS_FILE = before;
    rmSync(file, { force: true });
  }
});

const asRepeat = (line: string): unknown => JSON.parse(line);

describe('a test that a pause may fail', () => {
  const block = (ms: number): void => {
    for (const until = performance.now() + ms; performance.now() < until;);
  };

  it('fails at the first failure of a process that was not paused', () =>
    // The machine may pause this process too.
    withoutPauses(async () => {
      let tries = 0;
      const body = async (): Promise<void> => {
        tries++;
        throw new Error('lost');
      };
      await expect(withoutPauses(body, undefined, () => undefined)).rejects.toThrow('lost');
      expect(tries).toBe(1);
    }));

  it('runs again after a failure of a process that was paused, and records that', async () => {
    let tries = 0;
    const recorded: TimedTestRepeat[] = [];
    const body = async (): Promise<void> => {
      if (tries++ > 0) return;
      block(550);
      throw new Error('lost');
    };
    await withoutPauses(body, undefined, (repeat) => void recorded.push(repeat));
    expect(tries).toBe(2);
    expect(recorded.map(({ test }) => test)).toEqual([expect.getState().currentTestName]);
    expect(recorded[0]!.message).toMatch(/^the process was paused for \d+ ms$/);
  });

  it('fails when the third run of a paused process fails, too', async () => {
    let tries = 0;
    const body = async (): Promise<void> => {
      tries++;
      block(550);
      throw new Error('lost');
    };
    await expect(withoutPauses(body, undefined, () => undefined)).rejects.toThrow('lost');
    expect(tries).toBe(3);
  });
});
