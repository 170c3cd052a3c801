import { DatabaseUnavailable } from '#platform';
import { verify } from '#projections';
import { eventually, faultProxy, type FaultProxy } from '#testing';
import { CommandHandler } from './handle-commands.ts';
import {
  addMessage,
  answerUnder,
  apply,
  blockedBackends,
  connect,
  idleThread,
  makeAppend,
  openFixture,
  openProcess,
  piece,
  readAll,
  record,
  runningThread,
  whileLocked,
  type Fixture,
  type Process,
} from './store.testing.ts';

// Real: PostgreSQL, and a TCP proxy between it and the process, which breaks the connection at a chosen moment.

let on: Fixture;
let proxy: FaultProxy;
/** The process behind the proxy. `on` connects directly. */
let behind: Process;

beforeEach(async () => {
  on = await openFixture();
  proxy = await faultProxy(Number(new URL(on.url).port || 5432));
  behind = await openProcess(proxy.through(on.url));
});

afterEach(async () => {
  proxy.resume();
  expect((await verify(on.pool)).findings).toEqual([]);
  await behind.close();
  await proxy.close();
  await on.close();
});

const isAppend = (request: Buffer): boolean => request.includes('append');
const texts = async (threadId: string): Promise<unknown[]> =>
  (await readAll(on, threadId)).filter(({ type }) => type === 'assistant.text_added').map(({ data }) => data);

test('does not repeat an append whose response was lost', async () => {
  const { thread, fence } = await runningThread(on);
  const { threadId } = thread;
  for (let i = 0; i < 5; i++) {
    const dropped = proxy.dropNextAnswer(isAppend);
    const { events } = await apply(behind.handler, { threadId, fence, commands: [record(fence, piece(String(i)))] });
    await dropped;
    expect((await readAll(on, threadId)).at(-1)?.id).toBe(events.at(-1)?.id);
  }
  expect(await texts(threadId)).toEqual(['0', '1', '2', '3', '4'].map((text) => ({ text })));
});

test('stores each append of a group once if its response was lost', async () => {
  const threads = await Promise.all(Array.from({ length: 6 }, () => runningThread(behind)));
  const isGroup = (request: Buffer): boolean => request.toString('latin1').split('append-events-in-group').length > 2;
  const dropped = proxy.dropNextAnswer(isGroup);
  const sent = threads.map(({ thread, fence }) => {
    const { threadId } = thread;
    return apply(behind.handler, { threadId, from: thread, fence, commands: [record(fence)] });
  });
  await Promise.all(sent);
  await dropped;
  for (const { thread } of threads) expect(await texts(thread.threadId)).toHaveLength(1);
});

test('does not repeat an append with a key and no events whose response was lost', async () => {
  const { threadId } = await idleThread(on);
  const dropped = proxy.dropNextAnswer(isAppend);
  const request = { threadId, commands: [{ type: 'unarchive' } as const], answer: () => answerUnder('lost') };
  // Not `appended`: the key may be that of another request with another answer.
  expect(await behind.handler.handle(request)).toEqual({ outcome: 'key_taken', isFinal: true });
  await dropped;
  expect(await on.store.findKey('token', 'lost')).not.toBeNull();
});

test('sends an append again that was killed before its commit', async () => {
  const { thread, fence } = await runningThread(on);
  const { threadId } = thread;
  const [handled] = await whileLocked(on.admin, threadId, async () => {
    const sent = apply(behind.handler, { threadId, from: thread, fence, commands: [record(fence)] });
    const [pid] = await blockedBackends(on.admin, 1);
    await on.admin.query('select pg_terminate_backend($1)', [pid]);
    await eventually(async () => (await blockedBackends(on.admin, 1))[0] !== pid, { what: 'it is sent again' });
    return [sent];
  });
  expect((await handled).events).toHaveLength(1);
  expect(await texts(threadId)).toHaveLength(1);
});

test('does not repeat an append that commits only while it is sent again', async () => {
  const { thread, fence } = await runningThread(on);
  const { threadId } = thread;
  const [handled] = await whileLocked(on.admin, threadId, async () => {
    const sent = apply(behind.handler, { threadId, from: thread, fence, commands: [record(fence)] });
    await blockedBackends(on.admin, 1);
    // The server does not notice, and keeps waiting for the lock. The second sending waits behind it.
    proxy.reset();
    await blockedBackends(on.admin, 2);
    return [sent];
  });
  const { events } = await handled;
  const stored = await readAll(on, threadId);
  expect(stored.slice(thread.version).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
});

for (const [how, fail] of [
  ['refuses connections', () => proxy.cut()],
  ['does not respond', () => proxy.stall()],
] as const) {
  test(
    `a database that ${how} fails all waiting commands, and works once it is back`,
    () => failsAndHeals(fail),
    60_000,
  );
}

async function failsAndHeals(fail: () => void): Promise<void> {
  const { threadId } = await idleThread(on);
  await behind.handler.handle({ threadId, commands: [{ type: 'archive' }] });
  fail();
  // Earlier than the default, which `clockPutBack` waits for.
  const giveUpAt = performance.now() + 1_000;
  const ask = () => behind.handler.handle({ threadId, commands: [addMessage()], giveUpAt });
  const asked = Array.from({ length: 20 }, ask);
  for (const outcome of await Promise.allSettled([...asked, behind.store.load(threadId, 1_000)])) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(DatabaseUnavailable) as unknown });
  }
  proxy.resume();
  const healed = () => behind.handler.handle({ threadId, commands: [{ type: 'unarchive' }] });
  await eventually(healed, { what: 'the pool has healed' });
}

// A wait by this clock would take an hour.
test('a clock that is put back while the database is unavailable does not lengthen the wait', clockPutBack, 30_000);

async function clockPutBack(): Promise<void> {
  const { threadId } = await idleThread(on);
  let setBackMs = 0;
  const handler = new CommandHandler({ store: behind.store, leaseMs: 1_000, now: () => Date.now() - setBackMs });
  proxy.cut();
  const asked = handler.handle({ threadId, commands: [addMessage()] });
  setBackMs = 3_600_000;
  await expect(asked).rejects.toThrow(DatabaseUnavailable);
}

test('a command succeeds if the database returns in time', async () => {
  const { threadId } = await idleThread(on);
  proxy.cut();
  const handled = apply(behind.handler, { threadId, commands: [addMessage()], giveUpAt: performance.now() + 10_000 });
  await expect(behind.store.load(threadId)).rejects.toThrow(DatabaseUnavailable);
  proxy.resume();
  expect((await handled).events).not.toHaveLength(0);
});

test('a connection that breaks while it is in use or idle does not end the process', async () => {
  const { threadId } = await idleThread(behind);
  const lent = await behind.pool.connect();
  const query = lent.query('select pg_sleep(60)').catch((error: unknown) => error);
  await behind.store.load(threadId);
  expect(behind.pool.idleCount).toBe(1);
  proxy.reset();
  expect(await query).toMatchObject({ message: expect.stringMatching(/ECONNRESET|terminated/) as unknown });
  lent.release(true);
  await eventually(() => behind.store.load(threadId), { what: 'the pool has healed' });
});

test('an append that waits too long for a lock stores nothing, throws, and keeps its connection', async () => {
  const impatient = await openProcess(on.url, { statementTimeoutMs: 1_500, maxConnections: 1 });
  const { thread, fence } = await runningThread(on);
  const append = await makeAppend({ threadId: thread.threadId, from: thread, fence, commands: [record(fence)] });
  await whileLocked(on.admin, thread.threadId, async () => {
    await expect(impatient.store.append(append)).rejects.toThrow(DatabaseUnavailable);
  });
  expect(await readAll(on, thread.threadId)).toHaveLength(thread.version);
  expect(await impatient.store.append(append)).toEqual({ outcome: 'appended' });
  await impatient.close();
});

test('a process stays within its connection limit and returns every connection', async () => {
  const threads = await Promise.all(Array.from({ length: 40 }, () => runningThread(behind)));
  const busy = threads.map(({ thread, fence }) =>
    Promise.all([
      behind.handler.handle({ threadId: thread.threadId, from: thread, fence, commands: [record(fence)] }),
      behind.store.readLogAfter(thread.threadId, '', { maxEvents: 10 }),
      behind.handler.handle({ threadId: thread.threadId, commands: [{ type: 'archive' }] }),
    ]),
  );
  expect(proxy.connectionCount()).toBeLessThanOrEqual(10);
  await Promise.all(busy);
  const { totalCount, idleCount, waitingCount } = behind.pool;
  expect({ totalCount, idleCount, waitingCount }).toEqual({ totalCount: idleCount, idleCount, waitingCount: 0 });
  const watcher = await connect(on.url);
  const { rows } = await watcher.query<{ settings: string[] }>(
    `select array_agg(distinct current_setting(name)) as settings
     from unnest('{statement_timeout,idle_in_transaction_session_timeout}'::text[]) as name`,
  );
  expect(rows[0]?.settings).toContain('0');
  await watcher.end();
  const settings = await behind.pool.query<{ name: string; setting: string }>(
    `select name, setting from pg_settings
     where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'TimeZone') order by name`,
  );
  expect(settings.rows.map(({ setting }) => setting)).toEqual(['UTC', '15000', '30000']);
});
