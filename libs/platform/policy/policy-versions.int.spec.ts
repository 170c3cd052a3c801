import { Client } from 'pg';
import { createTestDatabase, faultProxy, type FaultProxy, type TestDatabase } from '#testing';
import { openPolicyVersions } from './policy-versions.ts';
import { PolicyWatch, TRUSTED_MS } from './policy-watch.ts';

// Real: PostgreSQL, and a proxy to it that breaks. Not real: the clock and the timers of this process, so that no pause of the
// machine can end its trust. The triggers are tested in libs/event-store/policy-version.int.spec.ts.

const LOOK_MS = 1_000;

let database: TestDatabase;
let admin: Client;
let proxy: FaultProxy;
let watch: PolicyWatch;
let errors: unknown[];
/** The looks so far. Each resolves when it has ended. */
let looks: Promise<unknown>[];

beforeEach(async () => {
  database = await createTestDatabase();
  admin = new Client({ connectionString: database.ownerUrl });
  await admin.connect();
  proxy = await faultProxy(Number(new URL(database.url).port || 5432));
  errors = [];
  looks = [];
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  const versions = openPolicyVersions(proxy.through(database.url));
  const read = (): Promise<string> => {
    const look = versions.read();
    looks.push(look.catch(() => undefined));
    return look;
  };
  watch = new PolicyWatch({ versions: { ...versions, read }, onError: (error) => errors.push(error) });
  watch.start();
  await looksEnded();
  expect(watch.isTrusted).toBe(true);
});
afterEach(async () => {
  jest.useRealTimers();
  proxy.resume();
  await watch.stop();
  await proxy.close();
  await admin.end();
  await database.drop();
});

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const looksEnded = (): Promise<unknown> => Promise.all(looks);
const raise = (): Promise<unknown> => admin.query('update policy_version set version = version + 1');

it('notices a change with the next look, and looks once a second on one connection', async () => {
  const { generation } = watch;
  await raise();
  await pass(LOOK_MS - 1);
  expect([looks.length, watch.generation]).toEqual([1, generation]);
  await pass(1);
  await looksEnded();
  expect(looks.length).toBe(2);
  expect(watch.generation).not.toBe(generation);
  expect(proxy.connectionCount()).toBe(1);
});

describe.each([
  ['closes connections', () => proxy.cut()],
  ['is silent', () => proxy.stall()],
])('when the database %s', (_, fail) => {
  it(`stops trusting the cached policy after ${TRUSTED_MS} ms, and notices a change when the database is back`, async () => {
    const { generation } = watch;
    fail();
    await raise();
    // The look that begins after one second fails within the next one.
    await pass(2 * LOOK_MS);
    await looks[1];
    expect(errors).toHaveLength(1);
    await pass(TRUSTED_MS - 2 * LOOK_MS - 1);
    expect(watch.isTrusted).toBe(true);
    await pass(1);
    expect(watch.isTrusted).toBe(false);
    expect(watch.generation).toBe(generation);
    proxy.resume();
    await looksEnded();
    for (let tries = 0; tries < 10 && !watch.isTrusted; tries++) {
      await pass(LOOK_MS);
      await looksEnded();
    }
    expect(watch.isTrusted).toBe(true);
    expect(watch.generation).not.toBe(generation);
    expect(errors).toHaveLength(1);
  });
});

it('the cached policy stays trusted when the connection breaks', async () => {
  const { generation } = watch;
  proxy.reset();
  await raise();
  // The next look may use the broken connection. The one after it comes in time.
  for (let look = 1; look <= 2 && watch.generation === generation; look++) {
    await pass(LOOK_MS);
    expect(watch.isTrusted).toBe(true);
    await looksEnded();
  }
  expect(watch.generation).not.toBe(generation);
  expect(watch.isTrusted).toBe(true);
});

it('throws if policy_version has no row', async () => {
  await admin.query('delete from policy_version');
  const versions = openPolicyVersions(database.url);
  await expect(versions.read()).rejects.toThrow('The table policy_version has no row.');
  await versions.close();
});
