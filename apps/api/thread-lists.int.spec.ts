import type { ThreadSummary } from '#contract';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL.

let api: ApiUnderTest;

beforeAll(async () => {
  api = await ApiUnderTest.start();
});

afterAll(() => api.stop());

type Page = { threads: ThreadSummary[]; nextCursor: string | null };

async function list(agentId: string, query = '', token = api.token): Promise<Page> {
  const { status, json } = await api.get(`/agents/${agentId}/threads${query}`, { token });
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`);
  return json as unknown as Page;
}

const idsOf = ({ threads }: Page) => threads.map(({ id }) => id);

async function make(agentId: string, count: number, token = api.token): Promise<string[]> {
  const made: string[] = [];
  for (let i = 0; i < count; i++) made.unshift(await api.newThread({ agentId, token }));
  return made;
}

/** All pages; `between` happens after each. */
async function readPages(agentId: string, limit: number, between: () => Promise<unknown> = async () => undefined) {
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Page = await list(agentId, `?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    ids.push(...idsOf(page));
    cursor = page.nextCursor;
    await between();
  }
  return ids;
}

describe('the list of Threads', () => {
  test('has those of the caller and the agent, the last changed first', async () => {
    const agentId = await api.newAgent();
    const [second, first] = await make(agentId, 2);
    await make(api.agentId, 1);
    await make(agentId, 1, (await api.newPerson()).token);
    expect(idsOf(await list(agentId))).toEqual([second, first]);
    await api.post(`/threads/${first}/events`, { body: { events: [{ type: 'user_message', text: 'hi' }] } });
    const page = await list(agentId);
    expect(idsOf(page)).toEqual([first, second]);
    expect(page.threads[0]).toEqual((await api.get(`/threads/${first}`)).json.thread);
    expect(page.nextCursor).toBeNull();
  });

  test('of a service token has those that it created', async () => {
    const agentId = await api.newAgent();
    const wanted = { kind: 'service' as const, name: 'svc', organizationId: api.organizationId, agentIds: [agentId] };
    const { token } = await api.access.mintToken(wanted);
    const made = await make(agentId, 2, token);
    await make(agentId, 1);
    expect(idsOf(await list(agentId, '', token))).toEqual(made);
    expect(idsOf(await list(agentId, '?userId=u1', token))).toEqual(made);
  });

  test.each([1, 2, 3, 7, 100])('in pages of %d is the same', async (limit) => {
    const agentId = await api.newAgent();
    const made = await make(agentId, 7);
    expect(await readPages(agentId, limit)).toEqual(made);
  });

  test('neither skips nor doubles what does not change while others come, change and go', async () => {
    const agentId = await api.newAgent();
    const made = await make(agentId, 12);
    const quiet = made.filter((_, i) => i % 3 !== 0);
    const restless = made.filter((_, i) => i % 3 === 0);
    const seen = await readPages(agentId, 2, async () => {
      await make(agentId, 1);
      const [moved, gone] = [restless.pop(), restless.length > 2 ? restless.pop() : undefined];
      if (moved) await api.post(`/threads/${moved}/archive`).then(() => api.post(`/threads/${moved}/unarchive`));
      if (gone) await api.call('DELETE', `/threads/${gone}`);
    });
    expect(seen.filter((id) => quiet.includes(id))).toEqual(quiet);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test('is narrowed by status, archived and userId', async () => {
    const agentId = await api.newAgent();
    const [busy, archived, idle] = await make(agentId, 3);
    await api.post(`/threads/${archived}/archive`);
    await api.post(`/threads/${busy}/events`, { body: { events: [{ type: 'user_message', text: 'hi' }] } });
    const other = await api.post(`/agents/${agentId}/threads`, { body: { userId: 'ü2' } });
    const ids = async (query: string) => idsOf(await list(agentId, query)).sort();
    expect(await ids('')).toEqual([busy, idle, other.json.thread.id].sort());
    expect(await ids('?archived=false')).toEqual([busy, idle, other.json.thread.id].sort());
    expect(await ids('?archived=true')).toEqual([archived]);
    expect(await ids('?archived=all')).toEqual([busy, archived, idle, other.json.thread.id].sort());
    expect(await ids('?status=RUNNING')).toEqual([busy]);
    expect(await ids('?userId=%C3%BC2')).toEqual([other.json.thread.id]);
    expect(await ids('?userId=u1&archived=all&status=IDLE')).toEqual([archived, idle].sort());
  });

  test.each(['limit=0', 'limit=101', 'archived=maybe', 'status=idle', 'cursor=abc', 'userId=', 'cursor='])(
    'refuses %s',
    async (query) => {
      expect((await api.get(`/agents/${api.agentId}/threads?${query}`)).status).toBe(400);
    },
  );
});

describe('archiving', () => {
  test('is refused while a Run is active, and done twice is done once', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    expect((await api.post(`/threads/${threadId}/archive`)).json.error.code).toBe('idempotency_conflict');
    await api.post(`/threads/${threadId}/events`, { body: { events: [{ type: 'user_interrupt' }] } });
    for (const what of ['archive', 'archive', 'unarchive', 'unarchive']) {
      expect([what, (await api.post(`/threads/${threadId}/${what}`)).text]).toEqual([what, '{"ok":true}']);
    }
    const { events } = (await api.get(`/threads/${threadId}/events`)).json;
    expect(events.slice(-2).map(({ content }) => content)).toEqual(['archived', 'unarchived']);
  });

  test.each([
    ['no body and no type', {}],
    ['a type and no body', { headers: { 'content-type': 'application/json' } }],
  ])('takes %s', async (_, call) => {
    const threadId = await api.newThread();
    expect((await api.post(`/threads/${threadId}/archive`, call)).status).toBe(200);
  });
});

describe('a retry', () => {
  test('of a cancelled Run makes a new one, once a key', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    const { run } = (await api.get(`/threads/${threadId}`)).json;
    const path = `/threads/${threadId}/runs/${run.id}/retry`;
    expect((await api.post(path)).status).toBe(409);
    await api.post(`/threads/${threadId}/events`, { body: { events: [{ type: 'user_interrupt' }] } });
    const headers = { 'idempotency-key': 'retry-1' };
    const retried = await api.post(path, { headers });
    expect(retried.status).toBe(201);
    expect(retried.json.run).toMatchObject({ status: 'queued', trigger: 'resume' });
    expect((await api.post(path, { headers })).text).toBe(retried.text);
    expect((await api.get(`/threads/${threadId}`)).json.thread.last_run_id).toBe(retried.json.run.id);
  });

  test('of a Run of another Thread is 404', async () => {
    const [mine, other] = [await api.newThread({ text: 'a' }), await api.newThread({ text: 'b' })];
    const { run } = (await api.get(`/threads/${other}`)).json;
    expect((await api.post(`/threads/${mine}/runs/${run.id}/retry`)).status).toBe(404);
  });
});

describe('budgets', () => {
  test('so many requests a minute, told with every answer; without a token by address', async () => {
    const small = await ApiUnderTest.start({
      settings: { RATE_LIMIT_PER_PERSON_TOKEN: 3, RATE_LIMIT_STORE: 'process' },
    });
    try {
      const { token } = await small.newPerson();
      const get = (as: string) => small.get(`/agents/${small.agentId}`, { token: as });
      const left = [];
      for (let i = 0; i < 3; i++) left.push((await get(token)).headers.get('ratelimit-remaining'));
      expect(left).toEqual(['2', '1', '0']);
      const refused = await get(token);
      expect([refused.status, refused.json.error.code]).toEqual([429, 'rate_limited']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await get(small.token)).status).toBe(200);
      const strangers = [];
      for (let i = 0; i < 4; i++) strangers.push((await get('nobody')).status);
      expect(strangers).toEqual([401, 401, 401, 429]);
    } finally {
      await small.stop();
    }
  });

  test('less in a batch of events, and in a message, where that is set', async () => {
    const small = await ApiUnderTest.start({ settings: { EVENTS_PER_BATCH: 1, MESSAGE_TEXT_LIMIT: 3 } });
    try {
      const threadId = await small.newThread();
      const say = (...texts: string[]) => {
        const events = texts.map((text) => ({ type: 'user_message', text }));
        return small.post(`/threads/${threadId}/events`, { body: { events } });
      };
      expect((await say('🐟🐟🐟🐟')).status).toBe(400);
      expect((await say('a', 'b')).status).toBe(400);
      expect((await say('🐟🐟🐟')).status).toBe(200);
    } finally {
      await small.stop();
    }
  });

  test('so many open streams', async () => {
    const small = await ApiUnderTest.start({ settings: { STREAMS_PER_PERSON_TOKEN: 1 } });
    try {
      const path = `/threads/${await small.newThread()}/events/stream`;
      const open = new AbortController();
      const first = await fetch(`${small.url}${path}`, {
        headers: { authorization: `Bearer ${small.token}` },
        signal: open.signal,
      });
      expect([first.status, first.headers.get('ratelimit-limit')]).toEqual([200, '1000000000']);
      const second = await small.get(path);
      expect([second.status, second.headers.get('retry-after')]).toEqual([429, '1']);
      open.abort();
    } finally {
      await small.stop();
    }
  });
});
