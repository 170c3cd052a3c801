import { FairQueue } from './fair-queue.ts';

const MINUTE = 60_000;

describe('turns of the task pool', () => {
  it('go to the organization that used the least time', () => {
    const queue = new FairQueue<string>({ maxRunning: 1, maxWaiting: 10 });
    for (const name of ['a1', 'a2', 'b1', 'b2']) queue.add(name.charAt(0), name, 0);
    expect([queue.take(0), queue.take(0), queue.take(0)]).toEqual(['a1', 'b1', undefined]);
    queue.ended('b', 0, 1_000);
    queue.ended('a', 0, 3_000);
    expect(queue.take(3_000)).toBe('b2');
    queue.ended('b', 3_000, 8_000);
    queue.add('b', 'b3', 8_000);
    expect(queue.take(8_000)).toBe('a2');
  });

  it('forget what was used minutes ago', () => {
    const queue = new FairQueue<string>({ maxRunning: 1, maxWaiting: 10 });
    queue.add('a', 'a1', 0);
    queue.take(0);
    queue.ended('a', 0, MINUTE);
    queue.add('b', 'b1', 20 * MINUTE);
    queue.take(20 * MINUTE);
    queue.ended('b', 20 * MINUTE, 20 * MINUTE + 10);
    for (const name of ['b2', 'a2']) queue.add(name.charAt(0), name, 20 * MINUTE + 10);
    expect(queue.take(20 * MINUTE + 10)).toBe('a2');
  });

  it('count the time of calls that still run', () => {
    const queue = new FairQueue<string>({ maxRunning: 2, maxWaiting: 10 });
    queue.add('a', 'a1', 0);
    queue.take(0);
    for (const name of ['a2', 'b1']) queue.add(name.charAt(0), name, 10);
    expect(queue.take(10)).toBe('b1');
  });

  it('are refused past the limit of waiting ones, and given back', () => {
    const queue = new FairQueue<string>({ maxRunning: 1, maxWaiting: 1 });
    expect([queue.add('a', 'a1', 0), queue.add('a', 'a2', 0), queue.add('b', 'b1', 0)]).toEqual([true, false, true]);
    expect([queue.remove('a', 'a1'), queue.remove('a', 'a1'), queue.remove('c', 'c1')]).toEqual([true, false, false]);
    expect(queue.add('a', 'a2', 0)).toBe(true);
    expect(queue.drain()).toEqual(['a2', 'b1']);
    expect(queue.take(0)).toBeUndefined();
  });
});
