import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import {
  createTestDatabase,
  eventually,
  expectWithin,
  faultProxy,
  timedTest,
  unpausedTest,
  type FaultProxy,
  type TestDatabase,
} from '#testing';
import { openPolicyVersions } from './policy-versions.ts';
import { PolicyWatch, TRUSTED_MS } from './policy-watch.ts';

// Real: PostgreSQL, and a proxy to it that breaks. The triggers are shown in libs/event-store/policy-version.int.spec.ts.

let database: TestDatabase;
let admin: Client;
let proxy: FaultProxy;
let watch: PolicyWatch;
let errors: unknown[];

const open = async (): Promise<void> => {
  database = await createTestDatabase();
  admin = new Client({ connectionString: database.ownerUrl });
  await admin.connect();
  proxy = await faultProxy(Number(new URL(database.url).port || 5432));
  errors = [];
  watch = new PolicyWatch({
    versions: openPolicyVersions(proxy.through(database.url)),
    onError: (error) => errors.push(error),
  });
  watch.start();
  await trusted(true);
};
const close = async (): Promise<void> => {
  proxy.resume();
  await watch.stop();
  await proxy.close();
  await admin.end();
  await database.drop();
};
const again = (): Promise<void> => close().then(open);
beforeEach(open);
afterEach(close);

const trusted = (isTrusted: boolean): Promise<unknown> =>
  eventually(() => watch.isTrusted === isTrusted, { what: `it is ${isTrusted ? '' : 'not '}trusted` });
const raise = (): Promise<unknown> => admin.query('update policy_version set version = version + 1');

const noticesSoon = async (): Promise<void> => {
  const { generation } = watch;
  const startedAt = performance.now();
  await raise();
  await eventually(() => watch.generation !== generation, { what: 'the change is noticed' });
  const tookMs = performance.now() - startedAt;
  expect(proxy.connectionCount()).toBe(1);
  expectWithin(2_000, tookMs, 'the change was noticed after');
};
timedTest(
  'notices a change within a second or so, and looks once a second on one connection',
  noticesSoon,
  30_000,
  again,
);

describe.each([
  ['closes connections', () => proxy.cut()],
  ['is silent', () => proxy.stall()],
])('when the database %s', (_, fail) => {
  it(`stops trusting the cached policy after ${TRUSTED_MS} ms, and notices a change when the database is back`, async () => {
    const { generation } = watch;
    await trusted(true);
    fail();
    // Every successful look has started before this.
    const failedAt = performance.now();
    await raise();
    const isLapsed = (): boolean => {
      const askedAt = performance.now();
      if (!watch.isTrusted) return true;
      // Asked before the answer was computed, so a pause in between cannot fail this.
      expect(askedAt - failedAt).toBeLessThan(TRUSTED_MS);
      return false;
    };
    while (!isLapsed()) await setTimeout(1);
    expect(watch.generation).toBe(generation);
    proxy.resume();
    await trusted(true);
    expect(watch.generation).not.toBe(generation);
    expect(errors).toHaveLength(1);
  });
});

const staysTrusted = async (): Promise<void> => {
  const { generation } = watch;
  proxy.reset();
  await raise();
  while (watch.generation === generation) {
    expect(watch.isTrusted).toBe(true);
    await setTimeout(1);
  }
};
unpausedTest('the cached policy stays trusted when the connection breaks', staysTrusted, 30_000, again);

it('has no version without the row: a look fails', async () => {
  await admin.query('delete from policy_version');
  const versions = openPolicyVersions(database.url);
  await expect(versions.read()).rejects.toThrow('The row of policy_version is missing.');
  await versions.close();
});
