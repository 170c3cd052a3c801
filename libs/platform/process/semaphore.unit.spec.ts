import { setImmediate as settled } from 'node:timers/promises';
import { Semaphore } from './semaphore.ts';

it('limits concurrent work, admits in the order of arrival, and frees the place of failed work', async () => {
  const turns = new Semaphore(2);
  const begun: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const outcomes = [0, 1, 2, 3].map((n) =>
    turns
      .take(() => {
        begun.push(n);
        return new Promise<number>((resolve, reject) => {
          ends.push((error) => (error ? reject(error) : resolve(n)));
        });
      })
      .catch((error: Error) => error.message),
  );
  await settled();
  expect(begun).toEqual([0, 1]);
  ends[1]!(new Error('failed'));
  await settled();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]!();
  await settled();
  expect(begun).toEqual([0, 1, 2, 3]);
  ends[2]!();
  ends[3]!();
  expect(await Promise.all(outcomes)).toEqual([0, 'failed', 2, 3]);
  expect(await turns.take(() => Promise.resolve('free again'))).toBe('free again');
});
