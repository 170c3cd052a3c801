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

it('gives the stored answer again, byte for byte, whatever has happened since', async () => {
  const key = newKey();
  const first = await create(key);
  expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null]);
  await api.completeRun(first.json.thread.id, first.json.run.id);
  const before = await api.rowCounts();
  const again = await create(key);
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true']);
  expect(again.text).toBe(first.text);
  expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
  expect(await api.rowCounts()).toEqual(before);
});

it('does so for events too, where the state would reject them now', async () => {
  const threadId = await api.newThread();
  const key = newKey();
  const first = await send(threadId, key, message('hi'));
  expect(first.status).toBe(200);
  const again = await send(threadId, key, message('hi'));
  expect([again.status, again.text]).toEqual([200, first.text]);
  expect((await send(threadId, newKey(), message('hi'))).status).toBe(409);
});

it('takes ids in either case, any key order and white space for the same request', async () => {
  const key = newKey();
  const first = await create(key, 'a b');
  const other = `{ "input" : {"content":[ {"text":"a\\u0020b","type":"text"} ],"type":"user.message"},\n"userId":"u" }`;
  const again = await api.post(`/agents/${api.agentId.toLowerCase()}/threads`, {
    body: other,
    headers: { 'idempotency-key': key },
  });
  expect([again.status, again.text]).toEqual([201, first.text]);

  const threadId = first.json.thread.id;
  const interrupt = { type: 'user_interrupt', runId: first.json.run.id };
  const sendKey = newKey();
  const sent = await send(threadId, sendKey, interrupt);
  const sentAgain = await send(threadId.toLowerCase(), sendKey, {
    runId: interrupt.runId.toLowerCase(),
    type: interrupt.type,
  });
  expect([sentAgain.headers.get('idempotency-replayed'), sentAgain.text]).toEqual(['true', sent.text]);
});

it('has a fingerprint that stays the same from release to release', async () => {
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

it('refuses another request with the key', async () => {
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

it('belongs to the token', async () => {
  const key = newKey();
  await create(key);
  const { token } = await api.newPerson();
  const reply = await api.post(`/agents/${api.agentId}/threads`, {
    token,
    body: body('x'),
    headers: { 'idempotency-key': key },
  });
  expect([reply.status, reply.headers.get('idempotency-replayed')]).toEqual([201, null]);
});

it('has one effect when sent many times at once', async () => {
  const key = newKey();
  const before = await api.rowCounts();
  const replies = await Promise.all(Array.from({ length: 40 }, () => create(key, 'at once')));
  const after = await api.rowCounts();
  expect(after['streams']! - before['streams']!).toBe(1);
  expect(after['idempotency_keys']! - before['idempotency_keys']!).toBe(1);
  const created = replies.filter(({ status }) => status === 201);
  expect(new Set(created.map(({ text }) => text)).size).toBe(1);
  expect(created.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
  for (const { status, headers, json } of replies.filter((reply) => reply.status !== 201)) {
    expect([status, json.error.code, headers.get('retry-after')]).toEqual([409, 'idempotency_conflict', '1']);
  }
});

it('has one effect when a batch is sent many times at once: none is told of a conflict with itself', async () => {
  const threadId = await api.newThread();
  const key = newKey();
  const replies = await Promise.all(Array.from({ length: 40 }, () => send(threadId, key, message('hi'))));
  expect(new Set(replies.filter(({ status }) => status === 200).map(({ text }) => text)).size).toBe(1);
  for (const { json } of replies.filter(({ status }) => status !== 200)) {
    expect(json.error.message).toContain('in progress');
  }
  expect((await api.get(`/threads/${threadId}/runs`)).json.runs).toHaveLength(1);
});

it('is in progress for as long as the transaction that does the work', async () => {
  const { rows } = await api.pool.query<{ id: string }>(`select id from tokens where person_id = $1`, [api.personId]);
  const key = newKey();
  const before = await api.rowCounts();
  const other = new Client({ connectionString: api.databaseUrl });
  await other.connect();
  try {
    await other.query('begin');
    await other.query(`select pg_advisory_xact_lock(hashtextextended($1::text || ' ' || $2, 0))`, [rows[0]?.id, key]);
    const busy = await create(key);
    expect([busy.status, busy.json.error.code, busy.headers.get('retry-after')]).toEqual([
      409,
      'idempotency_conflict',
      '1',
    ]);
    expect(busy.json.error.message).toContain('in progress');
    expect(await api.rowCounts()).toEqual(before);
  } finally {
    // As if the process that does the work was killed.
    await other.end();
  }
  await eventually(async () => (await create(key)).status === 201, { what: 'the key is free again' });
});

it('does not keep what was refused', async () => {
  const key = newKey();
  const threadId = await api.newThread({ text: 'hi' });
  const refused = await send(threadId, key, message('too early'));
  expect(refused.status).toBe(409);
  await send(threadId, newKey(), { type: 'user_interrupt' });
  const accepted = await send(threadId, key, message('too early'));
  expect([accepted.status, accepted.headers.get('idempotency-replayed')]).toEqual([200, null]);
});

it('keeps the answer of a batch without an effect', async () => {
  const threadId = await api.newThread({ text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  await api.completeRun(threadId, runId);
  const key = newKey();
  const first = await send(threadId, key, { type: 'user_interrupt', runId });
  const again = await send(threadId, key, { type: 'user_interrupt', runId });
  expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true']);
  expect(again.json.warnings).toHaveLength(1);
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

it('passes the checks of access on a replay, and is 404 once the Thread is gone', async () => {
  const agentId = await api.newAgent();
  const key = newKey();
  const { json } = await create(key, 'hi', agentId);
  await api.pool.query('delete from thread_summaries where thread_id = $1', [json.thread.id]);
  const gone = await create(key, 'hi', agentId);
  expect([gone.status, gone.json.error.code]).toEqual([404, 'not_found']);
  await api.pool.query('update agents set published = false where id = $1', [agentId]);
  await eventually(async () => (await create(key, 'hi', agentId)).json.error.code === 'agent_not_published', {
    what: 'the agent is seen to be unpublished',
  });
});

it.each([
  ['empty', ''],
  ['too long', 'k'.repeat(129)],
])('refuses a key that is %s', async (_, key) => {
  const { status, json } = await create(key);
  expect([status, json.error.code]).toEqual([400, 'invalid_request']);
  expect(json.error.message).toContain('Idempotency-Key');
});

it('takes a key of 128 characters', async () => {
  expect((await create('k'.repeat(128))).status).toBe(201);
});
