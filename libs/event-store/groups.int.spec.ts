import { randomBytes } from 'node:crypto';
import pg, { type DatabaseError } from 'pg';
import { ulid } from 'ulid';
import { StatementGroup } from '#platform';
import { verify } from '#projections';
import { eventRows, groupedStatement, nameOf, type Append } from './append.ts';
import { absentThread } from './handle-commands.ts';
import {
  addMessage,
  answerUnder,
  blockedBackends,
  createThread,
  makeAppend,
  newRun,
  openFixture,
  piece,
  record,
  runningThread,
  type Fixture,
} from './store.testing.ts';
import { ThreadStore } from './thread-store.ts';

// Real: PostgreSQL, pg, the statements. One lane each, so that everything which is sent while a group is in flight gathers.

let on: Fixture;
let store: ThreadStore;

beforeAll(async () => {
  on = await openFixture();
  store = new ThreadStore(on.pool, { lanes: 1, readLanes: 1 });
});

afterAll(async () => {
  expect((await verify(on.pool)).findings).toEqual([]);
  await on.close();
});

const creation = (more: object = {}): Promise<Append> => {
  const threadId = ulid();
  const commands = [{ ...createThread(), ...more }, addMessage('Hello', newRun())];
  return makeAppend({ threadId, from: absentThread(threadId), commands });
};

async function pieces(text = 'some words'): Promise<Append> {
  const { thread, fence } = await runningThread(on);
  return makeAppend({ threadId: thread.threadId, from: thread, fence, commands: [record(fence, piece(text))] });
}

async function ending(): Promise<Append> {
  const { thread, fence } = await runningThread(on);
  const commands = [{ type: 'complete_run', ...fence, finalOutput: null } as const];
  return makeAppend({ threadId: thread.threadId, from: thread, fence, commands });
}

/** Sends the appends while another one is in flight. Returns the names of their results, or the codes of their errors. */
async function sendTogether(appends: Append[]): Promise<string[]> {
  const first = store.append(await pieces());
  const sent = appends.map((append) => store.append(append).then(nameOf, (error: DatabaseError) => error.code ?? ''));
  expect(await first).toEqual({ outcome: 'appended' });
  return Promise.all(sent);
}

/** The number of transactions that stored the appends. */
async function transactionsOf(appends: Append[]): Promise<number> {
  const ids = appends.map(({ after }) => after.lastEventId);
  const query =
    'select count(distinct xmin::text)::integer as count, count(*)::integer as stored from events where id = any($1)';
  const { rows } = await on.admin.query<{ count: number; stored: number }>(query, [ids]);
  expect(rows[0]?.stored).toBe(ids.length);
  return rows[0]!.count;
}

test('appends that meet are committed in one transaction', async () => {
  const appends = [await pieces(), await creation(), await ending(), await creation(), await pieces()];
  expect(await sendTogether(appends)).toEqual(appends.map(() => 'appended'));
  expect(await transactionsOf(appends)).toBe(1);
});

test('a member that conflicts affects no other', async () => {
  const [stale, appends] = [await ending(), [await ending(), await creation(), await pieces()]];
  await store.append({ ...stale });
  expect(await sendTogether([stale, ...appends])).toEqual(['conflict', 'appended', 'appended', 'appended']);
  expect(await transactionsOf(appends)).toBe(1);
});

test('an idempotency key has one effect if two members have it', async () => {
  const [one, two] = [await creation(), await creation()];
  const names = await sendTogether([one, two].map((append) => ({ ...append, answer: answerUnder('twice') })));
  expect(names.toSorted()).toEqual(['appended', 'key_taken']);
});

test.each([
  ['Thread', 'select from streams where thread_id = $1 for update'],
  ['work item', 'select from run_work where thread_id = $1 for update'],
])('a member whose %s is locked waits alone', async (_, lock) => {
  const [locked, others] = [await ending(), [await ending(), await creation(), await pieces()]];
  await on.admin.query('begin');
  await on.admin.query(lock, [locked.after.threadId]);
  const waits = store.append(locked);
  expect(await sendTogether(others)).toEqual(['appended', 'appended', 'appended']);
  expect(await transactionsOf(others)).toBe(1);
  await blockedBackends(on.admin, 1);
  await on.admin.query('rollback');
  expect(await waits).toEqual({ outcome: 'appended' });
});

test('if a member fails, the others are stored one by one', async () => {
  const [bad, others] = [await pieces('\0'), [await pieces(), await creation()]];
  expect(await sendTogether([bad, ...others])).toEqual(['22P05', 'appended', 'appended']);
  expect(await transactionsOf(others)).toBe(2);
});

test('a member whose caller has stopped waiting is not sent', async () => {
  const [locked, late] = [await creation(), await creation()];
  const { threadId } = locked.after;
  await on.admin.query('begin');
  await on.admin.query(`insert into streams values ($1, 1, 'held', now(), '{}')`, [threadId]);
  const sent = store.append(locked);
  await blockedBackends(on.admin, 1);
  await expect(store.append(late, 0)).rejects.toThrow('The database does not answer.');
  await on.admin.query('rollback');
  expect(await sent).toEqual({ outcome: 'appended' });
});

test('a member whose caller stops waiting affects no other, and is not known to be stored', async () => {
  const [locked, others] = [await creation(), [await creation(), await pieces()]];
  await on.admin.query('begin');
  await on.admin.query(`insert into streams values ($1, 1, 'held', now(), '{}')`, [locked.after.threadId]);
  const [impatient, ...patient] = [locked, ...others].map((append, i) =>
    store.append(append, i === 0 ? 200 : undefined),
  );
  await blockedBackends(on.admin, 1);
  expect(await impatient).toEqual({ outcome: 'unknown' });
  await on.admin.query('rollback');
  expect(await Promise.all(patient)).toEqual([{ outcome: 'appended' }, { outcome: 'appended' }]);
  expect(await transactionsOf(others)).toBe(1);
});

test('an append does not wait for a group if another lane is free', async () => {
  const twoLanes = new ThreadStore(on.pool, { lanes: 2 });
  const locked = await creation();
  await on.admin.query('begin');
  await on.admin.query(`insert into streams values ($1, 1, 'held', now(), '{}')`, [locked.after.threadId]);
  // Without this timer, the first group never leaves its lane before it is answered.
  const { setTimeout } = globalThis;
  jest
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation((run: () => void, ms?: number) => setTimeout(ms === 1_000 ? () => {} : run, ms));
  const waits = twoLanes.append(locked);
  await blockedBackends(on.admin, 1);
  // Sooner than the database ends the statement of the first group.
  expect(await twoLanes.append(await pieces(), 10_000)).toEqual({ outcome: 'appended' });
  jest.restoreAllMocks();
  await on.admin.query('rollback');
  expect(await waits).toEqual({ outcome: 'appended' });
});

test('a group that waits does not stop the next one for long', async () => {
  const locked = await creation();
  await on.admin.query('begin');
  await on.admin.query(`insert into streams values ($1, 1, 'held', now(), '{}')`, [locked.after.threadId]);
  const waits = store.append(locked);
  await blockedBackends(on.admin, 1);
  // There is one lane, which the stalled group has left.
  expect(await store.append(await pieces())).toEqual({ outcome: 'appended' });
  await on.admin.query('rollback');
  expect(await waits).toEqual({ outcome: 'appended' });
});

test('a large append goes alone', async () => {
  const [large, small] = [await pieces('x'.repeat(70_000)), await pieces()];
  expect(await sendTogether([large, small])).toEqual(['appended', 'appended']);
  expect(await transactionsOf([large, small])).toBe(2);
});

test.each([
  ['an externalRef', async () => creation({ externalRef: { value: 'order', tokenId: 'token' } })],
  ['a hook', async () => ({ ...(await pieces()), hook: {} })],
  ['a due date', async () => ({ ...(await ending()), due: { runId: ulid(), attempt: 1 } })],
])('an append with %s goes alone', async (_, make) => {
  const append = await make();
  expect(groupedStatement({ append, rows: await eventRows(append.events) })).toBeNull();
});

describe('reads', () => {
  /** Returns the number of statements in each group that this process sends. */
  function recordGroups(): number[] {
    const sizes: number[] = [];
    const query = Reflect.get(pg.Client.prototype, 'query') as (...all: unknown[]) => unknown;
    jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      if (args[0] instanceof StatementGroup) sizes.push(args[0].statements.length);
      return query.apply(this, args) as never;
    });
    return sizes;
  }

  afterEach(() => jest.restoreAllMocks());

  const wanted = { after: '', maxEvents: 10 };

  test('that meet are one group, and return what each returns alone', async () => {
    const alone = new ThreadStore(on.pool, { readLanes: 0 });
    const [one, two] = [await runningThread(on), await runningThread(on)].map(({ thread }) => thread.threadId);
    const reads = (from: ThreadStore): Promise<unknown>[] => [
      from.load(one!),
      from.findThread(two!),
      from.findThread(one!),
      from.findThreadWithLog(two!, wanted),
      from.load(ulid()),
      from.findKey('token', 'key'),
      from.findThreadWithLog(one!, { ...wanted, shorterThan: 1 }),
    ];
    const sizes = recordGroups();
    const grouped = await Promise.all(reads(store));
    expect(sizes).toEqual([7]);
    expect(grouped).toEqual(await Promise.all(reads(alone)));
    expect(sizes).toEqual([7]);
  });

  test('are sent one by one if one of them fails', async () => {
    const { threadId } = (await runningThread(on)).thread;
    const first = store.load(threadId);
    const [bad, good] = [store.load('\0'), store.findThread(threadId)];
    await expect(bad).rejects.toMatchObject({ code: '22021' });
    expect((await good)?.thread.thread_id).toBe(threadId);
    expect((await first)?.threadId).toBe(threadId);
  });

  test('have the page of the log only if it is small', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    const page = (await store.findThreadWithLog(threadId, wanted))!.page!;
    expect(page).toEqual(await store.readLogPage(threadId, '', { maxEvents: 10 }));
    const commands = [record(fence, piece(randomBytes(20_000).toString('hex')))];
    await store.append(await makeAppend({ threadId, from: thread, fence, commands }));
    const found = await store.findThreadWithLog(threadId, wanted);
    expect(found).toMatchObject({ version: page.events.at(-1)!.version + 1, page: null });
    const after = found!.lastEntryId;
    expect((await store.findThreadWithLog(threadId, { ...wanted, after }))!.page).toMatchObject({
      events: [],
      end: { version: found!.version, idle: false },
    });
  });
});
