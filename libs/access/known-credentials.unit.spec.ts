import { PolicyWatch } from '#platform';
import { collectGarbage } from '#testing';
import { KnownCredentials } from './known-credentials.ts';

/** Same as in known-credentials.ts. */
const MAX_CACHED = 20_000;

const versions = { read: () => Promise.resolve('1'), close: () => Promise.resolve() };
const admit = { beforeLookUp: () => Promise.resolve() };

let lookUps: number;
let credentials: KnownCredentials<string>;
beforeEach(() => {
  lookUps = 0;
  credentials = new KnownCredentials({
    watch: new PolicyWatch({ versions }),
    read: () => {
      lookUps += 1;
      return Promise.resolve(null);
    },
    touch: () => Promise.resolve(),
    onError: () => undefined,
  });
});

/** Returns the credential in a header, which V8 makes a view of the whole header. */
function credentialOf(header: string): string {
  return /^bearer +(\S+)$/i.exec(header)?.[1] ?? '';
}

function heapAfterCollection(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

it('caches a bounded number of unknown credentials and drops the oldest', async () => {
  for (let i = 0; i <= MAX_CACHED; i++) await credentials.find(`unknown-${i}`, admit);
  expect(lookUps).toBe(MAX_CACHED + 1);
  await credentials.find(`unknown-${MAX_CACHED}`, admit);
  await credentials.find('unknown-1', admit);
  expect(lookUps).toBe(MAX_CACHED + 1);
  await credentials.find('unknown-0', admit);
  expect(lookUps).toBe(MAX_CACHED + 2);
});

it('does not keep the headers of unknown credentials in memory', async () => {
  const count = 2_000;
  const headerOf = (i: number): string =>
    Buffer.from(`Bearer ${' '.repeat(15_000)}unknown-credential-${i}`).toString('latin1');
  await credentials.find(credentialOf(headerOf(count)), admit);
  const before = heapAfterCollection();
  for (let i = 0; i < count; i++) await credentials.find(credentialOf(headerOf(i)), admit);
  // The headers would take 30 MB.
  expect(heapAfterCollection() - before).toBeLessThan(count * 1_000);
  await credentials.find(`unknown-credential-0`, admit);
  expect(lookUps).toBe(count + 1);
});
