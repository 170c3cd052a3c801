import { ulid } from 'ulid';
import type { CreateThread } from '#domain';
import { rebuild, verify } from '#projections';
import { nameOf } from './append.ts';
import { absentThread } from './handle-commands.ts';
import { answerUnder, createThread, openFixture, openProcess, type Fixture, type Process } from './store.testing.ts';

// Real: PostgreSQL, and two pools, as of two pods.

let on: Fixture;
let other: Process;

beforeAll(async () => {
  on = await openFixture({ maxConnections: 20 });
  other = await openProcess(on.url, { maxConnections: 20 });
});

afterAll(async () => {
  expect((await verify(on.pool)).findings).toEqual([]);
  await other.close();
  await on.close();
});

type Reference = Partial<Pick<CreateThread, 'externalRef' | 'clientExternalRef' | 'agentId' | 'userId'>>;

const agentId = ulid();
const token = ulid();
const referredTo = (value: string, tokenId = token) => ({ externalRef: { value, tokenId } });

interface Creation {
  by?: Process;
  threadId?: string;
  key?: string;
}

async function create(reference: Reference, { by = on, threadId = ulid(), key = '' }: Creation = {}): Promise<string> {
  const command = { ...createThread(), agentId, ...reference } as CreateThread;
  const answer = key === '' ? undefined : () => answerUnder(key, token);
  const result = await by.handler.handle({ threadId, from: absentThread(threadId), commands: [command], answer });
  return nameOf(result);
}

const count = async (table: string): Promise<number> => {
  const { rows } = await on.admin.query<{ count: number }>(`select count(*)::integer as count from ${table}`);
  return rows[0]!.count;
};

test('exactly one of 32 concurrent creations from two processes gets the reference; the others store nothing', async () => {
  const before = await count('events');
  const outcomes = await Promise.all(
    Array.from({ length: 32 }, (_, i) => create(referredTo('ticket 1'), { by: i % 2 ? other : on, key: `key ${i}` })),
  );
  expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === 'reference_taken')).toHaveLength(31);
  expect(await count('events')).toBe(before + 1);
  expect(await count('idempotency_keys')).toBe(1);
});

test('another token, Agent or user may have the same reference', async () => {
  const outcomes = [
    await create(referredTo('ticket 2')),
    await create(referredTo('ticket 2', ulid())),
    await create({ ...referredTo('ticket 2'), agentId: ulid() }),
    await create({ ...referredTo('ticket 2'), userId: 'another' }),
    await create(referredTo('Ticket 2')),
    await create(referredTo('ticket 2')),
  ];
  expect(outcomes).toEqual(['appended', 'appended', 'appended', 'appended', 'appended', 'reference_taken']);
});

test('references by the older name are not unique and do not block others', async () => {
  const older = { clientExternalRef: 'ticket 3' };
  const outcomes = [
    await create(older),
    await create(older),
    await create(referredTo('ticket 3')),
    await create(older),
  ];
  expect(outcomes).toEqual(['appended', 'appended', 'appended', 'appended']);
});

test('a Thread that is deleted frees its reference', async () => {
  const threadId = ulid();
  await create(referredTo('ticket 4'), { threadId });
  expect(await create(referredTo('ticket 4'))).toBe('reference_taken');
  await on.handler.deleteThread(threadId);
  expect(await create(referredTo('ticket 4'))).toBe('appended');
});

test('a repeat with the same key is replayed, even if its reference is taken', async () => {
  await create(referredTo('ticket 5'), { key: 'once' });
  expect(await create(referredTo('ticket 5'), { key: 'once' })).toBe('key_taken');
  expect(await create(referredTo('ticket 5'), { key: 'twice' })).toBe('reference_taken');
});

test('the longest reference of the longest user id fits the index', async () => {
  // Random, because PostgreSQL compresses repeated text.
  const longest = () =>
    Array.from({ length: 255 }, () => String.fromCodePoint(0x1f000 + Math.floor(Math.random() * 0xfff))).join('');
  expect(await create({ ...referredTo(longest()), userId: longest() })).toBe('appended');
});

test('a rebuild restores the reference of a row that was lost', async () => {
  const threadId = ulid();
  await create(referredTo('ticket 6'), { threadId });
  await on.admin.query('delete from thread_summaries where thread_id = $1', [threadId]);
  await rebuild(on.pool);
  expect(await create(referredTo('ticket 6'))).toBe('reference_taken');
});
