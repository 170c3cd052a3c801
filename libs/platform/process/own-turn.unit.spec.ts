import { ownTurn, pauseIfLong } from './own-turn.ts';

/** Counts turns of the event loop. */
function turnCounter() {
  let turns = 0;
  let isCounting = true;
  const count = (): void => {
    turns += 1;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
  return { now: () => turns, stop: () => (isCounting = false) };
}

it('gives each of several callers a separate turn', async () => {
  const counter = turnCounter();
  const turns = await Promise.all(Array.from({ length: 10 }, () => ownTurn().then(counter.now)));
  counter.stop();
  expect(new Set(turns).size).toBe(10);
});

it('pauses only in a turn that has taken long, and counts the work of all callers', async () => {
  // The real clock would also count the time in which this process gets no CPU.
  let now = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
  await ownTurn();
  expect(pauseIfLong()).toBeUndefined();
  expect(pauseIfLong()).toBeUndefined();
  now += 5;
  const counter = turnCounter();
  const turns = await Promise.all([1, 2, 3].map(async () => pauseIfLong()?.then(counter.now)));
  counter.stop();
  expect(new Set(turns).size).toBe(3);
  expect(turns).not.toContain(undefined);
  expect(pauseIfLong()).toBeUndefined();
  clock.mockRestore();
});
