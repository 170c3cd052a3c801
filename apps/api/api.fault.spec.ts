import { describeWithPrivateRedis, eventually, faultProxy, type FaultProxy, startPrivateRedis } from '#testing';
import { ApiUnderTest } from './api-under-test.testing.ts';

const create = (userId: string) => ({
  userId,
  input: { type: 'user.message', content: [{ type: 'text', text: 'hi' }] },
});
const readiness = async ({ url }: ApiUnderTest) => {
  const response = await fetch(`${new URL(url).origin}/health/ready`);
  return {
    code: response.status,
    ...((await response.json()) as { status: string; queue: string; reasons: string[] }),
  };
};

describe('PostgreSQL unavailable', () => {
  let proxy: FaultProxy;
  let api: ApiUnderTest;

  beforeAll(async () => {
    const through = async (url: string) => {
      proxy = await faultProxy(Number(new URL(url).port || 5432));
      return proxy.through(url);
    };
    api = await ApiUnderTest.start({ through });
  });
  afterAll(async () => {
    proxy.resume();
    await api.stop();
    await proxy.close();
  });

  const post = (userId: string, headers: Record<string, string> = {}) =>
    api.post(`/agents/${api.agentId}/threads`, { body: create(userId), headers });
  const threadsOf = async (userId: string) => {
    const { rows } = await api.pool.query('select from thread_summaries where user_id = $1', [userId]);
    return rows.length;
  };

  it('returns 503 with Retry-After, is not ready, and recovers', async () => {
    const threadId = await api.newThread();
    proxy.cut();
    for (const reply of [await api.get(`/threads/${threadId}`), await post('cut')]) {
      expect([reply.status, reply.json.error.code]).toEqual([503, 'internal_error']);
      expect(reply.headers.get('retry-after')).toBe('1');
      expect(reply.text).not.toMatch(/127\.0\.0\.1|ECONN/);
    }
    const { reasons, ...unready } = await readiness(api);
    expect(unready).toMatchObject({ code: 503, status: 'away' });
    expect(reasons[0]).toMatch(/^PostgreSQL does not answer \(since 20\d\d-.*Z\): no request can be answered\.$/);
    proxy.resume();
    await eventually(async () => (await post('back')).status === 201, { what: 'a Thread is created again' });
    expect(await threadsOf('cut')).toBe(0);
  });

  it('a connection lost after the append was sent creates one Thread and returns 201', async () => {
    const dropped = proxy.dropNextAnswer((request) => request.includes('lost answer'));
    const reply = await post('lost answer');
    await dropped;
    expect(reply.status).toBe(201);
    expect(await threadsOf('lost answer')).toBe(1);
    expect((await api.get(`/threads/${reply.json.thread.id}`)).json.run.id).toBe(reply.json.run.id);
  });

  it('a connection lost during the look-up of the optional fields returns the plain 201 of the write', async () => {
    const dropped = proxy.dropNextAnswer((request) => request.includes('thread-extras'));
    const reply = await api.post(`/agents/${api.agentId}/threads?extended=true`, { body: create('lost extras') });
    await dropped;
    expect(reply.status).toBe(201);
    const { thread } = (await api.get(`/threads/${reply.json.thread.id}`)).json;
    expect(reply.json.thread).toEqual({ ...thread, status: reply.json.thread.status });
    expect(await threadsOf('lost extras')).toBe(1);
  });

  it('a connection lost after a keyed append was sent creates one Thread, and a retry returns the stored answer', async () => {
    const headers = { 'idempotency-key': 'lost' };
    const dropped = proxy.dropNextAnswer((request) => request.includes('lost with key'));
    const first = await post('lost with key', headers);
    await dropped;
    const again = await post('lost with key', headers);
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await threadsOf('lost with key')).toBe(1);
  });

  const isSilent = async (): Promise<void> => {
    const threadId = await api.newThread();
    proxy.stall();
    const reply = await api.get(`/threads/${threadId}`);
    proxy.resume();
    expect([reply.status, reply.json.error.code]).toEqual([503, 'internal_error']);
  };
  test('returns 503 while PostgreSQL is silent', isSilent, 30_000);
});

describeWithPrivateRedis('Redis unavailable', () => {
  it('is ready but degraded, and accepts requests', async () => {
    const redis = await startPrivateRedis();
    const api = await ApiUnderTest.start({ settings: { QUEUE_URL: redis.url } });
    try {
      const all = { code: 200, status: 'ready', queue: 'ok' };
      await eventually(async () => (expect(await readiness(api)).toMatchObject(all), true), { what: 'all is there' });
      redis.pause();
      await eventually(async () => (await readiness(api)).status === 'degraded', { what: 'silence is seen' });
      expect((await api.post(`/agents/${api.agentId}/threads`, { body: create('u') })).status).toBe(201);
      redis.resume();
      await redis.kill();
      // Each part detects the failure separately.
      const seen = async () => ((next) => next.reasons.length === 3 && next)(await readiness(api));
      const { reasons, ...degraded } = await eventually(seen, { what: 'all parts that need Redis are reported' });
      expect(degraded).toMatchObject({ code: 200, status: 'degraded', queue: 'away' });
      const wrong = [/^The queue does not answer/, /^Wake-ups between processes/, /^The rate limit store/];
      expect(reasons).toEqual(wrong.map((words) => expect.stringMatching(words) as string));
      const since = (all: string[]): string[] => all.map((reason) => /since (\S+)\)/.exec(reason)![1]!);
      expect(since((await readiness(api)).reasons)).toEqual(since(reasons));
      expect((await api.post(`/agents/${api.agentId}/threads`, { body: create('u') })).status).toBe(201);
      await redis.start();
      await eventually(async () => (await readiness(api)).status === 'ready', { what: 'Redis is seen to be back' });
    } finally {
      await api.stop();
      await redis.stop();
    }
  });
});

describe('a body that is refused before it is read', () => {
  const MEBIBYTE = 1024 * 1024;
  let api: ApiUnderTest;

  beforeAll(async () => {
    api = await ApiUnderTest.start({ settings: { BODY_LIMIT_BYTES: MEBIBYTE } });
  });
  afterAll(() => api.stop());

  it.each([
    ['too large', 413, 'application/json'],
    ['of an unsupported type', 415, 'text/plain'],
  ])('%s gets its answer while the sender still sends, and the connection stays open', async (_, status, type) => {
    const body = 'x'.repeat(8 * MEBIBYTE);
    const headers = { 'content-type': type };
    const refused = await api.post(`/agents/${api.agentId}/threads`, { body, headers });
    // If the server closed the connection, a sender could lose the answer: 19 of 60 requests from another process did.
    expect([refused.status, refused.headers.get('connection')]).toEqual([status, null]);
  });
});
