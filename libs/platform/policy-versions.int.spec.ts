import { Client } from 'pg';
import {
  createTestDatabase,
  eventually,
  expectWithin,
  faultProxy,
  timedTest,
  type FaultProxy,
  type TestDatabase,
} from '#testing';
import { openPolicyVersions } from './policy-versions.ts';
import { PolicyWatch } from './policy-watch.ts';

// Real: PostgreSQL, and a proxy to it that breaks. The triggers are shown in libs/event-store/policy-version.int.spec.ts.

let database: TestDatabase;
let admin: Client;
let proxy: FaultProxy;
let watch: PolicyWatch;
let errors: unknown[];

const open = async (): Promise<void> => {
  database = await createTestDatabase();
  admin = new Client({ connectionString: database.url });
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
  const goesOn = async (): Promise<void> => {
    const { generation } = watch;
    fail();
    const startedAt = performance.now();
    await raise();
    await trusted(false);
    const tookMs = performance.now() - startedAt;
    expect(watch.generation).toBe(generation);
    proxy.resume();
    await trusted(true);
    expect(watch.generation).not.toBe(generation);
    expect(errors).toHaveLength(1);
    expectWithin(3_000, tookMs, 'it was not trusted any more after');
  };
  timedTest('is not trusted for long, and notices a change when it is back', goesOn, 30_000, again);
});

const staysTrusted = async (): Promise<void> => {
  const { generation } = watch;
  let trustedAt = performance.now();
  let lapsedMs = 0;
  const notices = (): boolean => {
    const now = performance.now();
    if (watch.isTrusted) trustedAt = now;
    else lapsedMs = Math.max(lapsedMs, now - trustedAt);
    return watch.generation !== generation;
  };
  proxy.reset();
  await raise();
  await eventually(notices, { what: 'the change is noticed' });
  expectWithin(0, lapsedMs, 'it was not trusted for');
};
timedTest('stays trusted over a connection that breaks', staysTrusted, 30_000, again);

it('has no version without the row: a look fails', async () => {
  await admin.query('delete from policy_version');
  const versions = openPolicyVersions(database.url);
  await expect(versions.read()).rejects.toThrow('The row of policy_version is missing.');
  await versions.close();
});
