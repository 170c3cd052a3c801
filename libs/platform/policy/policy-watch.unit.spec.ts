import { WatchUnderTest } from './policy.testing.ts';
import { TRUSTED_MS } from './policy-watch.ts';

let on: WatchUnderTest;
beforeEach(() => (on = new WatchUnderTest()));

it('is not trusted before its first look', async () => {
  expect(on.watch.isTrusted).toBe(false);
  await on.watch.look();
  expect(on.watch.isTrusted).toBe(true);
});

it('has a new generation after each change of the version, up or down, and notifies once', async () => {
  let told = 0;
  on.watch.onChange(() => told++);
  const generations = new Set<number>();
  for (const version of ['5', '5', '6', '5', '5']) {
    on.version = version;
    await on.watch.look();
    generations.add(on.watch.generation);
  }
  // A restored database may repeat a version, which still is a new generation.
  expect([generations.size, told]).toEqual([3, 3]);
});

it('has the new generation, and is trusted, when it notifies of a change', async () => {
  await on.watch.look();
  const { generation } = on.watch;
  on.pass(TRUSTED_MS);
  const seen: unknown[] = [];
  on.watch.onChange(() => seen.push(on.watch.generation !== generation, on.watch.isTrusted));
  await on.change();
  expect(seen).toEqual([true, true]);
});

it('is trusted from the start of a look, not from its response', async () => {
  let answer: () => void = () => undefined;
  on.delay = new Promise((resolve) => (answer = resolve));
  const looking = on.watch.look();
  on.pass(TRUSTED_MS - 1);
  answer();
  await looking;
  expect(on.watch.isTrusted).toBe(true);
  on.pass(1);
  expect(on.watch.isTrusted).toBe(false);
});

it('loses trust while looks fail, reports the first failure, and regains trust with the next look', async () => {
  await on.watch.look();
  on.failure = new Error('unavailable');
  for (let i = 0; i < 3; i++) {
    on.pass(TRUSTED_MS / 3);
    await on.watch.look();
  }
  expect([on.watch.isTrusted, on.errors]).toEqual([false, [on.failure]]);
  on.failure = null;
  const { generation } = on.watch;
  await on.watch.look();
  expect([on.watch.isTrusted, on.watch.generation]).toEqual([true, generation]);
  on.failure = new Error('unavailable again');
  await on.watch.look();
  expect(on.errors).toHaveLength(2);
});

it.each([
  ['the process was suspended', { monotonic: TRUSTED_MS, wall: TRUSTED_MS }],
  ['the machine slept, and the monotonic clock with it', { monotonic: 1, wall: TRUSTED_MS }],
  ['the wall clock was set back', { monotonic: 1, wall: -1 }],
])('is not trusted when %s', async (_, { monotonic, wall }) => {
  await on.watch.look();
  on.clock.monotonic += monotonic;
  on.clock.wall += wall;
  expect(on.watch.isTrusted).toBe(false);
});
