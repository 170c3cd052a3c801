import { DatabaseUnavailable } from '../postgres/database.ts';
import { PolicyCache } from './policy-cache.ts';
import { TRUSTED_MS } from './policy-watch.ts';
import { WatchUnderTest } from './policy.testing.ts';

let on: WatchUnderTest;
/** The reads in progress, oldest first. The test settles them. */
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

/** Gets the key, and settles the latest read with the value. */
async function read(key: string, value: string | null): Promise<string | null> {
  const asked = cache.get(key);
  reads.at(-1)!.answer(value);
  return asked;
}

it('reads once for concurrent callers, and not again while nothing changes', async () => {
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

it('neither caches nor shares a read that began before a change', async () => {
  const early = cache.get('a');
  await on.change();
  const late = cache.get('a');
  expect(reads).toHaveLength(2);
  reads[1]!.answer('new');
  expect(await late).toBe('new');
  // The overtaken read settles last.
  reads[0]!.answer('old');
  expect(await early).toBe('old');
  expect(await cache.get('a')).toBe('new');
  expect(reads).toHaveLength(2);
});

it('reads again after two changes, although the version is the same as before', async () => {
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
      on.failure = new Error('unavailable');
      on.pass(TRUSTED_MS / 2);
      await on.watch.look();
      on.pass(TRUSTED_MS / 2);
    },
  ],
])('reads for each call when %s, and throws the error of the read', async (_, lapse) => {
  await read('a', 'old');
  await lapse();
  expect(await read('a', 'new')).toBe('new');
  expect(await read('a', 'newer')).toBe('newer');
  const asked = cache.get('a');
  reads.at(-1)!.fail(new Error('unavailable'));
  await expect(asked).rejects.toThrow('unavailable');
});

it('uses an untrusted value again after a look that shows no change', async () => {
  on.pass(TRUSTED_MS);
  await read('a', 'value');
  await on.watch.look();
  expect(await cache.get('a')).toBe('value');
  expect(reads).toHaveLength(1);
});

it('rejects a response that is too old, as in a suspended process', async () => {
  on.pass(TRUSTED_MS);
  const suspended = cache.get('a');
  on.pass(TRUSTED_MS);
  // A new call does not share the old read.
  const asked = cache.get('a');
  expect(reads).toHaveLength(2);
  reads[0]!.answer('old');
  await expect(suspended).rejects.toThrow(DatabaseUnavailable);
  reads[1]!.answer('new');
  expect(await asked).toBe('new');
});

it('accepts a slow response if looks meanwhile have shown no change', async () => {
  const slow = cache.get('a');
  on.pass(TRUSTED_MS);
  await on.watch.look();
  reads[0]!.answer('value');
  expect(await slow).toBe('value');
});

it('caches neither failures nor values that `isKept` excludes', async () => {
  const failing = [cache.get('a'), cache.get('a')];
  reads[0]!.fail(new Error('unavailable'));
  for (const asked of failing) await expect(asked).rejects.toThrow('unavailable');
  expect(await read('a', null)).toBeNull();
  expect(await read('a', 'made')).toBe('made');
  expect(reads).toHaveLength(3);
});

it('evicts the oldest entry when it is full', async () => {
  cache = newCache(2);
  for (const key of ['a', 'b', 'c']) await read(key, key);
  expect([await cache.get('b'), await cache.get('c')]).toEqual(['b', 'c']);
  expect(reads).toHaveLength(3);
  await read('a', 'a');
  expect(reads).toHaveLength(4);
});
