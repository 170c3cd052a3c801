import { hash } from 'node:crypto';
import { ApiUnderTest } from './api-under-test.testing.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

let count = 0;
const newKey = () => `key ${++count}`;
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
