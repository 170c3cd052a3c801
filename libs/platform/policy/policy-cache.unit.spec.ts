import { DatabaseAway } from '../postgres/database.ts';
import { PolicyCache } from './policy-cache.ts';
import { TRUSTED_MS } from './policy-watch.ts';
import { WatchUnderTest } from './policy.testing.ts';

let on: WatchUnderTest;
/** Reads under way, oldest first; each answers when told to. */
let reads: { key: string; answer: (value: string | null) => void; fail: (error: Error) => void }[];
let cache: PolicyCache<string | null>;

beforeEach(async () => {
  on = new WatchUnderTest();
  reads = [];
  cache = newCache();
  await on.watch.look();
});

const newCache = (maxEntries = 10) =>
  new PolicyCache<string | null>({
    watch: on.watch,
    read: (key) =>
      new Promise((answer, fail) => {
        reads.push({ key, answer, fail });
      }),
    maxEntries,
    isKept: (value) => value !== null,
  });

/** Asks for it, and lets the read that it needs answer. */
async function read(key: string, value: string | null): Promise<string | null> {
  const asked = cache.get(key);
  reads.at(-1)!.answer(value);
  return asked;
}

it('reads once for all who ask at once, and not again while nothing changes', async () => {
  const asked = [cache.get('a'), cache.get('a'), cache.get('b')];
  expect(reads.map(({ key }) => key)).toEqual(['a', 'b']);
  reads.forEach(({ key, answer }) => answer(`value of ${key}`));
  expect(await Promise.all(asked)).toEqual(['value of a', 'value of a', 'value of b']);
  for (let i = 0; i < 100; i++) {
    on.pass(1_000);
    await on.watch.look();
    expect(await cache.get('a')).toBe('value of a');
  }
  expect(reads).toHaveLength(2);
});

it('reads again after a change', async () => {
  await read('a', 'old');
  await on.change();
  expect(await read('a', 'new')).toBe('new');
  expect(await cache.get('a')).toBe('new');
  expect(reads).toHaveLength(2);
});

it('does not keep, nor share, what began before a change that was noticed meanwhile', async () => {
  const early = cache.get('a');
  await on.change();
  const late = cache.get('a');
  expect(reads).toHaveLength(2);
  reads[1]!.answer('new');
  expect(await late).toBe('new');
  // The one that the change has overtaken comes last.
  reads[0]!.answer('old');
  expect(await early).toBe('old');
  expect(await cache.get('a')).toBe('new');
  expect(reads).toHaveLength(2);
});

it('does not find again what was read under a generation of before, though the version is the same again', async () => {
  await read('a', 'old');
  await on.change();
  on.version = '1';
  await on.watch.look();
  expect(await read('a', 'new')).toBe('new');
});

it.each([
  ['a look began too long ago', async () => on.pass(TRUSTED_MS)],
  [
    'looks fail',
    async () => {
      on.failure = new Error('away');
      on.pass(TRUSTED_MS / 2);
      await on.watch.look();
      on.pass(TRUSTED_MS / 2);
    },
  ],
])('reads each time when %s, and fails as the read does', async (_, lapse) => {
  await read('a', 'old');
  await lapse();
  expect(await read('a', 'new')).toBe('new');
  expect(await read('a', 'newer')).toBe('newer');
  const asked = cache.get('a');
  reads.at(-1)!.fail(new Error('away'));
  await expect(asked).rejects.toThrow('away');
});

it('finds again what was read meanwhile, when a look shows that nothing has changed', async () => {
  on.pass(TRUSTED_MS);
  await read('a', 'value');
  await on.watch.look();
  expect(await cache.get('a')).toBe('value');
  expect(reads).toHaveLength(1);
});

it('does not believe an answer that lay for long, as in a process that was suspended', async () => {
  on.pass(TRUSTED_MS);
  const suspended = cache.get('a');
  on.pass(TRUSTED_MS);
  // Who asks now does not wait for that one.
  const asked = cache.get('a');
  expect(reads).toHaveLength(2);
  reads[0]!.answer('old');
  await expect(suspended).rejects.toThrow(DatabaseAway);
  reads[1]!.answer('new');
  expect(await asked).toBe('new');
});

it('believes a slow answer when looks meanwhile have shown that nothing changed', async () => {
  const slow = cache.get('a');
  on.pass(TRUSTED_MS);
  await on.watch.look();
  reads[0]!.answer('value');
  expect(await slow).toBe('value');
});

it('remembers neither failures nor what is not to be kept', async () => {
  const failing = [cache.get('a'), cache.get('a')];
  reads[0]!.fail(new Error('away'));
  for (const asked of failing) await expect(asked).rejects.toThrow('away');
  expect(await read('a', null)).toBeNull();
  expect(await read('a', 'made')).toBe('made');
  expect(reads).toHaveLength(3);
});

it('forgets the oldest when it is full', async () => {
  cache = newCache(2);
  for (const key of ['a', 'b', 'c']) await read(key, key);
  expect([await cache.get('b'), await cache.get('c')]).toEqual(['b', 'c']);
  expect(reads).toHaveLength(3);
  await read('a', 'a');
  expect(reads).toHaveLength(4);
});
