import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { verify } from '#projections';
import { eventually } from '#testing';
import { absentThread } from './handle-commands.ts';
import {
  addMessage,
  answerUnder,
  apply,
  askAndDecide,
  blockedBackends,
  connect,
  createThread,
  idleThread,
  makeAppend,
  newRun,
  openFixture,
  piece,
  readAll,
  record,
  runningThread,
  tally,
  whileLocked,
  type Fixture,
} from './store.testing.ts';
import { nameOf, type Append, type Fence, type LoadedThread } from './append.ts';

// Real: PostgreSQL, pg, the statements. Forces each race: all contenders wait for one lock, as PostgreSQL reports.

let on: Fixture;

beforeAll(async () => {
  on = await openFixture({ maxConnections: 20 });
});

afterAll(async () => {
  expect((await verify(on.pool)).findings).toEqual([]);
  expect(on.pool.waitingCount).toBe(0);
  expect(on.pool.idleCount).toBe(on.pool.totalCount);
  await on.close();
});

/** Sends the append. Returns the name of its result. */
const send = async (append: Append): Promise<string> => nameOf(await on.store.append(append));

const creation = (threadId: string): Promise<Append> =>
  makeAppend({ threadId, from: absentThread(threadId), commands: [createThread()] });

const pieces = (thread: LoadedThread, fence: Fence, facts = [piece()]): Promise<Append> =>
  makeAppend({ threadId: thread.threadId, from: thread, fence, commands: [record(fence, ...facts)] });

const ending = (thread: LoadedThread, fence: Fence): Promise<Append> =>
  makeAppend({
    threadId: thread.threadId,
    from: thread,
    fence,
    commands: [{ type: 'complete_run', ...fence, finalOutput: null }],
  });

/** Sends 64 appends while a lock is held, and releases it once `waiting` connections wait for it. */
async function sendAtOnce(hold: string, values: unknown[], waiting: number, appends: () => Promise<Append>) {
  await on.admin.query('begin');
  await on.admin.query(hold, values);
  const made = await Promise.all(Array.from({ length: 64 }, appends));
  const sent = Promise.all(made.map((append) => on.store.append(append)));
  await blockedBackends(on.admin, waiting);
  await on.admin.query('rollback');
  return sent;
}

describe('of 64 concurrent appends', () => {
  test('one creates the Thread', async () => {
    const threadId = ulid();
    const hold = `insert into streams values ($1, 1, 'held', now(), '{}')`;
    // All are in one group, which waits for the key. Then members fail, and all are sent alone.
    const outcomes = await sendAtOnce(hold, [threadId], 1, () => creation(threadId));
    expect(tally(outcomes)).toEqual({ appended: 1, conflict: 63 });
    expect(await readAll(on, threadId)).toHaveLength(1);
  });

  test.each([
    ['deltas', (thread: LoadedThread, fence: Fence) => pieces(thread, fence)],
    ['the end of a Run', (thread: LoadedThread, fence: Fence) => ending(thread, fence)],
  ])('one stores %s at the version', async (_, make) => {
    const { thread, fence } = await runningThread(on);
    const hold = 'select from streams where thread_id = $1 for update';
    const outcomes = await sendAtOnce(hold, [thread.threadId], 20, () => make(thread, fence));
    expect(tally(outcomes)).toEqual({ appended: 1, conflict: 63 });
    const stored = await readAll(on, thread.threadId);
    expect(stored).toHaveLength((await make(thread, fence)).after.version);
  });

  test('one with the same idempotency key has an effect, even if each is about another Thread', async () => {
    const appends = await Promise.all(Array.from({ length: 64 }, () => creation(ulid())));
    const outcomes = await Promise.all(
      appends.map((append) => on.store.append({ ...append, answer: answerUnder('k') })),
    );
    expect(tally(outcomes).appended).toBe(1);
    expect(tally(outcomes).conflict).toBeUndefined();
    const created = await Promise.all(appends.map(({ after }) => on.store.load(after.threadId)));
    expect(created.filter((thread) => thread !== null)).toHaveLength(1);
  });
});

describe('an idempotency key', () => {
  test('has one effect and keeps its first answer if it is used twice', async () => {
    const answer = answerUnder('twice');
    const [first, second] = [await creation(ulid()), await creation(ulid())];
    expect(await send({ ...first, answer })).toBe('appended');
    const again = { ...second, answer: { ...answer, body: 'another' } };
    expect(await on.store.append(again)).toEqual({ outcome: 'key_taken', isFinal: true });
    const { fingerprint, status, body } = answer;
    const kept = await on.store.findKey(answer.tokenId, answer.key);
    expect(kept).toEqual({ fingerprint, status, body, threadId: first.after.threadId, fileId: null });
    expect(await on.store.load(second.after.threadId)).toBeNull();
  });

  test('is in progress exactly as long as the transaction that uses it', async () => {
    const append = { ...(await creation(ulid())), answer: answerUnder('busy') };
    const other = await connect(on.url);
    await other.query('begin');
    await other.query(`select pg_advisory_xact_lock(hashtextextended('token busy', 0))`);
    expect(await on.store.append(append)).toEqual({ outcome: 'key_taken', isFinal: false });
    expect(await on.store.load(append.after.threadId)).toBeNull();
    await other.end();
    await eventually(async () => (await send(append)) === 'appended', { what: 'the lock is gone' });
  });

  test('is independent of the same key of another token', async () => {
    const [first, second] = [await creation(ulid()), await creation(ulid())];
    expect(await send({ ...first, answer: answerUnder('same', 'token a') })).toBe('appended');
    expect(await send({ ...second, answer: answerUnder('same', 'token b') })).toBe('appended');
  });

  test('is not stored if its append conflicts', async () => {
    const { thread, fence } = await runningThread(on);
    const late = await pieces(thread, fence);
    await apply(on.handler, { threadId: thread.threadId, commands: [record(fence)] });
    expect(await send({ ...late, answer: answerUnder('late') })).toBe('conflict');
    expect(await on.store.findKey('token', 'late')).toBeNull();
  });

  test('is seen even if it was stored after the statement began', async () => {
    // The snapshot of the append misses the uncommitted key. Its own insert waits, and then violates the primary key.
    const [first, second] = [await creation(ulid()), await creation(ulid())];
    const answer = answerUnder('between');
    await on.admin.query('begin');
    await on.admin.query(`insert into idempotency_keys values ('token', 'between', '', null, 200, '')`);
    const sent = send({ ...first, answer });
    await blockedBackends(on.admin, 1);
    await on.admin.query('commit');
    expect(await sent).toBe('key_taken');
    expect(await send({ ...second, answer })).toBe('key_taken');
    expect(await on.store.load(first.after.threadId)).toBeNull();
  });
});

describe('the fence', () => {
  test.each([
    ['deltas', (thread: LoadedThread, fence: Fence) => pieces(thread, fence)],
    ['the end of a Run', (thread: LoadedThread, fence: Fence) => ending(thread, fence)],
  ])('refuses %s of an old attempt in the statement itself', async (_, make) => {
    const { thread, fence } = await runningThread(on);
    const old = await make(thread, fence);
    // The row has the next attempt at the same version, so only the fence can detect it.
    const claim = `update streams set state = jsonb_set(state, '{runs,0,attempt}', $2) where thread_id = $1`;
    await on.admin.query(claim, [thread.threadId, 2]);
    expect(await send(old)).toBe('conflict');
    expect(await readAll(on, thread.threadId)).toHaveLength(thread.version);
    await on.admin.query(claim, [thread.threadId, 1]);
    expect(await send(old)).toBe('appended');
  });

  test('refuses a Run that is not the current one', async () => {
    const { thread, fence } = await runningThread(on);
    const other = { ...fence, runId: ulid() };
    const append = { ...(await pieces(thread, fence)), fence: other };
    expect(await send(append)).toBe('conflict');
  });
});

describe('a reclaim of a Run', () => {
  const reclaiming = (thread: LoadedThread, fence: Fence): Promise<Append> =>
    makeAppend({
      threadId: thread.threadId,
      from: thread,
      due: fence,
      commands: [{ type: 'reclaim_run', ...fence, jitter: 0 }],
    });
  const expire = (runId: string) =>
    on.admin.query(`update run_work set due_at = clock_timestamp() - interval '1 ms' where run_id = $1`, [runId]);

  test('succeeds only once the Run is due by the clock of the database', async () => {
    const { thread, fence } = await runningThread(on);
    const append = await reclaiming(thread, fence);
    expect(await send(append)).toBe('conflict');
    await expire(fence.runId);
    expect(await send(append)).toBe('appended');
    expect((await on.store.load(thread.threadId))?.state).toMatchObject({ runs: [{ status: 'queued', dispatch: 2 }] });
  });

  test('succeeds after the work limit, even if the lease is valid', async () => {
    const { thread, fence } = await runningThread(on);
    await on.admin.query(`update run_work set work_until = clock_timestamp() where run_id = $1`, [fence.runId]);
    expect(await send(await reclaiming(thread, fence))).toBe('appended');
  });

  test('conflicts under another attempt', async () => {
    const { thread, fence } = await runningThread(on);
    await expire(fence.runId);
    const append = { ...(await reclaiming(thread, fence)), due: { ...fence, attempt: 2 } };
    expect(await send(append)).toBe('conflict');
  });

  test('conflicts if the lease is renewed while the append waits for the row', async () => {
    const { thread, fence } = await runningThread(on);
    await expire(fence.runId);
    await on.admin.query('begin');
    const renewal = `update run_work set due_at = clock_timestamp() + interval '10 s' where run_id = $1`;
    await on.admin.query(renewal, [fence.runId]);
    const sent = send(await reclaiming(thread, fence));
    await blockedBackends(on.admin, 1);
    await on.admin.query('commit');
    expect(await sent).toBe('conflict');
    expect(await readAll(on, thread.threadId)).toHaveLength(thread.version);
  });

  test('does not deadlock with a worker that ends the Run at the same time', async () => {
    const { thread, fence } = await runningThread(on);
    await expire(fence.runId);
    const [end, reclaim] = [await ending(thread, fence), await reclaiming(thread, fence)];
    const sent = await whileLocked(on.admin, thread.threadId, async () => {
      const ends = send(end);
      await blockedBackends(on.admin, 1);
      const reclaims = send(reclaim);
      await blockedBackends(on.admin, 2);
      // The waiting reclaim has not locked the work item.
      const other = await connect(on.url);
      const { rowCount } = await other.query('select from run_work where run_id = $1 for update nowait', [fence.runId]);
      expect(rowCount).toBe(1);
      await other.end();
      return [ends, reclaims];
    });
    expect(await Promise.all(sent)).toEqual(['appended', 'conflict']);
  });
});

describe('an append', () => {
  test('keeps every character of a text', async () => {
    const texts = [
      `it's "quoted" \\ and \\\\ \\n \\u0041`,
      `'); drop table events; --`,
      '😀 é \u{10FFFF} \uFFFF',
      '$1 $$ \t\n\r\u2028',
      '',
    ];
    const { thread, fence } = await runningThread(on);
    const before = thread.version;
    await apply(on.handler, {
      threadId: thread.threadId,
      commands: [record(fence, ...texts.map((text) => piece(text)))],
    });
    const stored = (await readAll(on, thread.threadId)).slice(before);
    expect(stored.map(({ data }) => data)).toEqual(texts.map((text) => ({ text })));
  });

  test.each([
    ['NUL', '\0'],
    ['a lone surrogate', '\uD800'],
  ])('fails and stores nothing if a text contains %s', async (_, text) => {
    const { thread, fence } = await runningThread(on);
    const commands = [record(fence, piece('fine'), piece(text))];
    await expect(on.handler.handle({ threadId: thread.threadId, commands })).rejects.toThrow(
      /unicode|Unicode|JSON|json/,
    );
    expect((await on.store.load(thread.threadId))?.version).toBe(thread.version);
  });

  test('stores 1,000 events in order', async () => {
    const { thread, fence } = await runningThread(on);
    const facts = Array.from({ length: 1_000 }, (_, i) => piece(String(i)));
    await apply(on.handler, { threadId: thread.threadId, commands: [record(fence, ...facts)] });
    const stored = (await readAll(on, thread.threadId)).slice(thread.version);
    expect(stored.map(({ data }) => data)).toEqual(facts.map(({ data }) => data));
    expect(stored.map(({ version }) => version)).toEqual(facts.map((_, i) => thread.version + 1 + i));
  });

  test('does not recreate a deleted Thread', async () => {
    const { thread, fence } = await runningThread(on);
    const late = await pieces(thread, fence);
    const key = { ...(await ending(thread, fence)), answer: answerUnder('deleted') };
    await on.store.deleteThread(thread.threadId);
    expect(await send(late)).toBe('conflict');
    expect(await send(key)).toBe('conflict');
    expect(await on.store.load(thread.threadId)).toBeNull();
    expect(await readAll(on, thread.threadId)).toEqual([]);
    expect(await on.store.findKey('token', 'deleted')).toBeNull();
  });
});

describe('reading the log', () => {
  const upTo = (maxEvents: number) => ({ maxEvents });

  test('returns only public events, after or before an id', async () => {
    const thread = await idleThread(on);
    const { threadId } = thread;
    await apply(on.handler, { threadId, commands: [addMessage()] });
    const shown = (await readAll(on, threadId)).filter((event) => event.public);
    expect(await on.store.readLogAfter(threadId, '', upTo(100))).toEqual({ events: shown, isCut: false });
    const [first, second] = shown;
    const oneAfter = await on.store.readLogAfter(threadId, first?.id ?? '', upTo(1));
    expect(oneAfter).toEqual({ events: [second], isCut: shown.length > 2 });
    expect(await on.store.readLogBefore(threadId, null, upTo(1))).toEqual({ events: shown.slice(-1), isCut: true });
    const before = await on.store.readLogBefore(threadId, second?.id ?? '', upTo(100));
    expect(before).toEqual({ events: [first], isCut: false });
  });

  test('returns decisions only if wanted, and then counts them', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    await askAndDecide(on, threadId, fence, ['Q1', 'Q2']);
    const all = await readAll(on, threadId);
    const plain = all.filter((event) => event.public);
    const extended = all.filter((event) => event.public || event.type === 'tool.confirmation_decided');
    expect(extended).toHaveLength(plain.length + 2);
    const { store } = on;
    for (const [withDecisions, shown] of [
      [false, plain],
      [true, extended],
    ] as const) {
      const wanted = { maxEvents: 100, withDecisions };
      expect(await store.readLogAfter(threadId, '', wanted)).toEqual({ events: shown, isCut: false });
      expect(await store.readLogBefore(threadId, null, wanted)).toEqual({ events: shown, isCut: false });
      for (let count = 1; count < shown.length; count++) {
        const some = { ...wanted, maxEvents: count };
        const after = shown.at(-count - 1)!.id;
        expect(await store.findLogStart(threadId, count, { withDecisions })).toBe(after);
        expect(await store.readLogAfter(threadId, after, some)).toEqual({ events: shown.slice(-count), isCut: false });
        expect(await store.readLogAfter(threadId, '', some)).toEqual({ events: shown.slice(0, count), isCut: true });
        expect(await store.readLogBefore(threadId, null, some)).toEqual({ events: shown.slice(-count), isCut: true });
      }
      expect(await store.findLogStart(threadId, shown.length, { withDecisions })).toBe('');
    }
    const pages = [];
    for (let end = null; end === null;) {
      const page = await store.readLogPage(threadId, pages.at(-1)?.id ?? '', { maxEvents: 2 });
      pages.push(...page!.events);
      end = page!.end;
    }
    expect(pages.map(({ id }) => id)).toEqual(extended.map(({ id }) => id));
  });

  test.each([
    ['that hardly compress', () => randomBytes(15_000).toString('base64')],
    ['that compress well', () => 'x'.repeat(20_000)],
  ])('and the stream stops at the byte limit, for texts %s', async (_, makeText) => {
    const { threadId } = await idleThread(on);
    for (let i = 0; i < 6; i++) {
      await apply(on.handler, { threadId, commands: [addMessage(makeText(), newRun(), 'enqueue')] });
    }
    const all = await readAll(on, threadId);
    const shown = all.filter((event) => event.public);
    const messages = shown.filter(({ type }) => type === 'message.added');
    const bounds = { maxEvents: 100, maxBytes: 30_000 };
    // The event that exceeds the limit is the last one.
    const first = await on.store.readLogAfter(threadId, '', bounds);
    expect(first).toEqual({ events: shown.slice(0, shown.indexOf(messages[1]!) + 1), isCut: true });
    const latest = await on.store.readLogBefore(threadId, null, bounds);
    expect(latest).toEqual({ events: shown.slice(shown.indexOf(messages.at(-2)!)), isCut: true });
    const stream = await on.store.readStream(threadId, 0, bounds);
    expect(stream).toEqual(all.slice(0, all.indexOf(messages[1]!) + 1));
    const page = await on.store.readLogPage(threadId, '', bounds);
    expect([page?.events.map(({ id }) => id), page?.end]).toEqual([first.events.map(({ id }) => id), null]);
    // An event that is larger than the limit is returned alone.
    const oneMessage = await on.store.readLogAfter(threadId, shown.at(shown.indexOf(messages[1]!) - 1)!.id, {
      maxEvents: 100,
      maxBytes: 1,
    });
    expect(oneMessage).toEqual({ events: [messages[1]], isCut: true });
    // Reads to the end, page by page.
    const read = [];
    for (let isCut = true; isCut;) {
      const next = await on.store.readLogAfter(threadId, read.at(-1)?.id ?? '', { maxEvents: 5, maxBytes: 10 });
      read.push(...next.events);
      ({ isCut } = next);
    }
    expect(read).toEqual(shown);
  });

  test('does not count the results of tools, which it does not show, towards the byte limit', async () => {
    const { thread, fence } = await runningThread(on);
    const { threadId } = thread;
    const result = randomBytes(30_000).toString('base64');
    const data = {
      toolCallId: 'call',
      toolName: 'tool',
      summary: 'done',
      durationMs: 1,
      outcome: 'ok',
      result,
    } as const;
    const completed = { type: 'tool.completed', data } as const;
    await apply(on.handler, { threadId, fence, commands: [record(fence, completed, completed)] });
    const { isCut } = await on.store.readLogAfter(threadId, '', { maxEvents: 100, maxBytes: 20_000 });
    const page = await on.store.readLogPage(threadId, '', { maxEvents: 100, maxBytes: 20_000 });
    expect([isCut, page?.end === null]).toEqual([false, false]);
  });

  test('returns events of unknown types, even if their data is not an object', async () => {
    const { threadId } = await idleThread(on);
    const insert = `insert into events (thread_id, version, id, type, schema_version, data, public, occurred_at)
                    values ($1, 2, $2, 'future.event', 1, '"text"', true, now())`;
    await on.admin.query(insert, [threadId, ulid(Date.now() + 60_000)]);
    expect(await on.store.readLogAfter(threadId, '', upTo(10))).toMatchObject({
      events: [{ type: 'future.event', data: 'text' }],
    });
    await on.admin.query('delete from events where thread_id = $1 and version = 2', [threadId]);
  });
});
