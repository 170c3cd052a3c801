import { hash } from 'node:crypto';
import { Client } from 'pg';
import { eventually } from '#testing';
import { ApiUnderTest } from './api-under-test.testing.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

let count = 0;
const newKey = () => `key ${++count}`;
const body = (text: string) => ({
  userId: 'u',
  input: { type: 'user.message', content: [{ type: 'text', text }] },
});
const create = (key: string, text = 'hi', agentId = api.agentId) =>
  api.post(`/agents/${agentId}/threads`, { body: body(text), headers: { 'idempotency-key': key } });
const send = (threadId: string, key: string, ...events: object[]) =>
  api.post(`/threads/${threadId}/events`, { body: { events }, headers: { 'idempotency-key': key } });
const message = (text: string) => ({ type: 'user_message', text });

it('the fingerprint of a request is the same in all releases', async () => {
  const key = newKey();
  const threadId = await api.newThread();
  const text = 'é'.repeat(100_000);
  expect((await send(threadId.toLowerCase(), key, { ...message(text), resources: [] })).status).toBe(200);
  const { rows } = await api.pool.query<{ fingerprint: string }>(
    'select fingerprint from idempotency_keys where key = $1',
    [key],
  );
  const canonical = `{"events":[{"resources":[],"text":"${text}","type":"user_message"}]}`;
  expect(rows[0]?.fingerprint).toBe(hash('sha256', `POST /threads/${threadId}/events\n${canonical}`));
});

it('refuses another request with the same key', async () => {
  const key = newKey();
  const { json } = await create(key);
  const otherAgent = await api.newAgent();
  const before = await api.rowCounts();
  const replies = [
    await create(key, 'other text'),
    await create(key, 'hi', otherAgent),
    await send(json.thread.id, key, { type: 'user_interrupt' }),
  ];
  for (const reply of replies) {
    expect([reply.status, reply.json.error.code]).toEqual([409, 'idempotency_conflict']);
    expect(reply.json.error.message).toContain('another request');
    expect(reply.headers.get('retry-after')).toBeNull();
  }
  expect(await api.rowCounts()).toEqual(before);
});

it('a batch sent many times concurrently has one effect, and no copy gets a conflict with another request', async () => {
  const threadId = await api.newThread();
  const key = newKey();
  const replies = await Promise.all(Array.from({ length: 40 }, () => send(threadId, key, message('hi'))));
  expect(new Set(replies.filter(({ status }) => status === 200).map(({ text }) => text)).size).toBe(1);
  for (const { json } of replies.filter(({ status }) => status !== 200)) {
    expect(json.error.message).toContain('in progress');
  }
  expect((await api.get(`/threads/${threadId}/runs`)).json.runs).toHaveLength(1);
});

it.each([
  ['a create', async () => create],
  [
    'a batch of events',
    async () => {
      const threadId = await api.newThread();
      return (key: string) => send(threadId, key, message('hi'));
    },
  ],
])('%s is in progress while a transaction holds the lock of its key', async (_, prepare) => {
  const { rows } = await api.pool.query<{ id: string }>(`select id from tokens where person_id = $1`, [api.personId]);
  const [request, key] = [await prepare(), newKey()];
  const before = await api.rowCounts();
  const other = new Client({ connectionString: api.databaseUrl });
  await other.connect();
  try {
    await other.query('begin');
    await other.query(`select pg_advisory_xact_lock(hashtextextended($1::text || ' ' || $2, 0))`, [rows[0]?.id, key]);
    const busy = await request(key);
    expect([busy.status, busy.json.error.code, busy.headers.get('retry-after')]).toEqual([
      409,
      'idempotency_conflict',
      '1',
    ]);
    expect(busy.json.error.message).toContain('in progress');
    expect(await api.rowCounts()).toEqual(before);
    expect((await create(newKey())).status).toBe(201);
  } finally {
    // Simulates that the process with the first request was killed.
    await other.end();
  }
  const done = await eventually(
    async () => {
      const reply = await request(key);
      return reply.status < 300 ? reply : null;
    },
    { what: 'the key is free again' },
  );
  expect(done.headers.get('idempotency-replayed')).toBeNull();
});

it('replays the stored warnings even if a new request would have none', async () => {
  const agentId = await api.newAgent({}, { whenBusy: 'enqueue' });
  const threadId = await api.newThread({ agentId, text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  const key = newKey();
  const first = await send(threadId, key, message('later'));
  expect(first.json.warnings).toMatchObject([{ code: 'message_queued' }]);
  await api.completeRun(threadId, runId);
  const again = await send(threadId, key, message('later'));
  expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true']);
});
