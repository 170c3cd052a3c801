import { eventuallyWithin, expectWithin, TooSlow, withinBounds } from './timed-test.ts';

/** A body that takes one of the times after the other, and may take 10 ms. */
function bodyTaking(...times: number[]) {
  const bodies = { tries: 0, again: 0, told: '' };
  const run = (): Promise<void> =>
    withinBounds(
      async () => expectWithin(10, times[bodies.tries++]!, 'it came after'),
      async () => void bodies.again++,
      (text) => (bodies.told += text),
    );
  return { bodies, run };
}

it('is over with the first that is within the bound', async () => {
  const { bodies, run } = bodyTaking(11, 10, 9);
  await run();
  expect(bodies).toEqual({ tries: 2, again: 1, told: 'it came after 11 ms, not 10 at most: tried again\n' });
});

it('fails when the third is late too', async () => {
  const { bodies, run } = bodyTaking(11, 12, 13, 1);
  await expect(run()).rejects.toThrow(new TooSlow('it came after 13 ms, not 10 at most'));
  expect(bodies).toMatchObject({ tries: 3, again: 2 });
});

it('takes what is no time for late', async () => {
  await expect(bodyTaking(NaN, NaN, NaN).run()).rejects.toThrow(TooSlow);
});

it('fails at once with anything else', async () => {
  let tries = 0;
  const body = async (): Promise<void> => {
    tries++;
    throw new Error('lost');
  };
  await expect(withinBounds(body)).rejects.toThrow('lost');
  expect(tries).toBe(1);
});

it('takes for late what came to be so only after the bound', async () => {
  let asked = 0;
  const isSo = (): boolean => ++asked > 1;
  await expect(eventuallyWithin(0, isSo, 'it is so')).rejects.toThrow(TooSlow);
  expect(asked).toBe(2);
  await eventuallyWithin(1_000, isSo, 'it is so');
});
