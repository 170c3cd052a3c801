import type { ThreadSummary } from '#contract';
import { eventually } from '#testing';
import { ThreadReader } from '#threads';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL. Two processes on one database. The second accepts the older fields too.

let api: ApiUnderTest;
let compatible: ApiUnderTest;

beforeAll(async () => {
  api = await ApiUnderTest.start();
  const settings = { COMPATIBILITY_FIELDS: 'on' } as const;
  compatible = await ApiUnderTest.start({ settings, through: async () => api.databaseUrl });
});

afterAll(async () => {
  await compatible.stop();
  await api.stop();
});

interface Call {
  token?: string;
  agentId?: string;
  key?: string;
  by?: ApiUnderTest;
  extended?: boolean;
}

const create = (fields: object, { token, agentId = api.agentId, key, by = api, extended }: Call = {}) =>
  by.post(`/agents/${agentId}/threads${extended ? '?extended=true' : ''}`, {
    body: { userId: 'u', ...fields },
    token: token ?? api.token,
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });

type Page = { threads: ThreadSummary[]; nextCursor: string | null };

async function list(query = '', { token = api.token, path = '/threads' } = {}): Promise<Page> {
  const { status, json } = await api.get(`${path}${query}`, { token });
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`);
  return json as unknown as Page;
}

const idsOf = ({ threads }: Page) => threads.map(({ id }) => id);
const input = { type: 'user.message', content: [{ type: 'text', text: 'Hello' }] };
const newService = (agentIds: string[]) =>
  api.access.mintToken({ kind: 'service', organizationId: api.organizationId, agentIds, name: 'n' });

describe('an externalRef', () => {
  test('that is taken gets 409, which names the Thread, and changes nothing', async () => {
    const first = await create({ externalRef: 'order 1' });
    const before = await api.rowCounts();
    const again = await create({ externalRef: 'order 1', input }, { key: 'order 1 again' });
    expect([again.status, again.json.error]).toEqual([
      409,
      { code: 'idempotency_conflict', message: `The externalRef is already used by Thread ${first.json.thread.id}.` },
    ]);
    const { headers } = again;
    expect([headers.get('retry-after'), headers.get('spool-thread-id')]).toEqual([null, first.json.thread.id]);
    const extended = await create({ externalRef: 'order 1' }, { extended: true });
    expect(extended.json.error).toEqual({ ...again.json.error, threadId: first.json.thread.id });
    expect(await api.rowCounts()).toEqual(before);
  });

  test('that was refused leaves its Idempotency-Key free; a repeated success is replayed', async () => {
    const first = await create({ externalRef: 'order 5' }, { key: 'five' });
    const again = await create({ externalRef: 'order 5' }, { key: 'five' });
    expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([201, first.text, 'true']);
    expect((await create({ externalRef: 'order 5' }, { key: 'six' })).status).toBe(409);
    expect((await create({ externalRef: 'order 6' }, { key: 'six' })).status).toBe(201);
  });

  test.each([
    ['empty', ''],
    ['of 256 characters', '😀'.repeat(256)],
    ['with NUL', 'a\0'],
    ['null', null],
  ])('that is %s gets 400', async (_, externalRef) => {
    expect((await create({ externalRef })).status).toBe(400);
  });

  test('of 255 characters is accepted', async () => {
    expect((await create({ externalRef: '😀'.repeat(255) })).status).toBe(201);
  });

  test('with an equal client_external_ref stays unique; with a different one it gets 400', async () => {
    const both = { externalRef: 'order 7', client_external_ref: 'order 7' };
    const made = await create(both, { by: compatible });
    expect((made.json.thread as unknown as { client_external_ref: string }).client_external_ref).toBe('order 7');
    expect((await create({ client_external_ref: 'order 7' }, { by: compatible })).status).toBe(201);
    expect((await create(both, { by: compatible })).status).toBe(409);
    const unequal = await create({ externalRef: 'order 7', client_external_ref: 'order 8' }, { by: compatible });
    expect([unequal.status, unequal.json.error.message]).toEqual([
      400,
      'body.client_external_ref: must be the same as externalRef',
    ]);
  });
});

describe('lists by externalRef', () => {
  test('find references given by either name, for one Agent and for all', async () => {
    const agentId = await api.newAgent();
    const unique = await create({ externalRef: 'case 1' }, { agentId });
    const older = await create({ client_external_ref: 'case 1' }, { agentId, by: compatible });
    const elsewhere = await create({ externalRef: 'case 1', userId: 'ü' });
    await create({ externalRef: 'case 2' }, { agentId });
    const both = [older.json.thread.id, unique.json.thread.id];
    expect(idsOf(await list('?externalRef=case%201', { path: `/agents/${agentId}/threads` }))).toEqual(both);
    expect(idsOf(await list('?externalRef=case%201'))).toEqual([elsewhere.json.thread.id, ...both]);
    expect(idsOf(await list('?externalRef=case%201&userId=%C3%BC'))).toEqual([elsewhere.json.thread.id]);
    expect(idsOf(await list('?externalRef=case'))).toEqual([]);
  });

  test.each(['externalRef=', `externalRef=${'a'.repeat(256)}`, 'cursor=x', 'limit=101'])('refuse %s', async (query) => {
    expect((await api.get(`/threads?${query}`)).status).toBe(400);
  });
});

describe('the list over all Agents', () => {
  test('has the caller’s Threads in pages, last changed first', async () => {
    const person = await api.newPerson();
    const agents = [api.agentId, await api.newAgent(), await api.newAgent()];
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.unshift((await create({}, { ...person, agentId: agents[i % 3]! })).json.thread.id);
    await api.post(`/threads/${made[6]}/events`, {
      token: person.token,
      body: { events: [{ type: 'user_message', text: 'hi' }] },
    });
    const order = [made[6], ...made.slice(0, 6)];
    expect(idsOf(await list('', person))).toEqual(order);
    const paged: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Page = await list(`?limit=2${cursor && `&cursor=${cursor}`}`, person);
      paged.push(...idsOf(page));
      cursor = page.nextCursor;
    }
    expect(paged).toEqual(order);
    expect(idsOf(await list('?status=RUNNING', person))).toEqual([made[6]]);
    await api.post(`/threads/${made[0]}/archive`, person);
    expect(idsOf(await list('?archived=true', person))).toEqual([made[0]]);
    expect(idsOf(await list('', person))).not.toContain(made[0]);
  });

  test('omits Threads of Agents that the token may no longer use', async () => {
    const [one, two] = [await api.newAgent(), await api.newAgent()];
    const { id, token } = await newService([one, two]);
    const kept = (await create({}, { token, agentId: one })).json.thread.id;
    const left = (await create({}, { token, agentId: two })).json.thread.id;
    expect(idsOf(await list('', { token }))).toEqual([left, kept]);
    await api.pool.query('delete from token_agents where token_id = $1 and agent_id = $2', [id, two]);
    await eventually(async () => (await api.get(`/threads/${left}`, { token })).status === 403, { what: 'it is seen' });
    expect(idsOf(await list('', { token }))).toEqual([kept]);
    await api.pool.query('update agents set published = false where id = $1', [one]);
    await eventually(async () => (await api.get(`/threads/${kept}`, { token })).status === 409, { what: 'it is seen' });
    expect(idsOf(await list('', { token }))).toEqual([]);
  });
});

describe('a title', () => {
  const patch = (threadId: string, body: object, query = '') =>
    api.call('PATCH', `/threads/${threadId}${query}`, { body });

  test('that is set is returned, listed and kept after later messages', async () => {
    const made = await create({ input });
    const { id, updated_at } = made.json.thread;
    const set = await patch(id, { title: 'Order “1042” 😀' });
    expect([set.status, set.text]).toEqual([200, (await api.get(`/threads/${id}`)).text]);
    expect(set.json.thread.title).toBe('Order “1042” 😀');
    expect(set.json.thread.updated_at > updated_at).toBe(true);
    expect(set.json.run).toEqual(made.json.run);
    expect(idsOf(await list('?limit=1'))).toEqual([id]);
    const empty = (await create({})).json.thread.id;
    await patch(empty, { title: 'Mine' });
    const say = { events: [{ type: 'user_message', text: 'Hello' }] };
    expect((await api.post(`/threads/${empty}/events`, { body: say })).json.thread.title).toBe('Mine');
  });

  test('null restores the title of the first message, or none without a message', async () => {
    const { id } = (await create({ input })).json.thread;
    await patch(id, { title: 'Mine' });
    expect((await patch(id, { title: null })).json.thread.title).toBe('Hello');
    const empty = (await create({})).json.thread.id;
    await patch(empty, { title: 'Mine' });
    expect((await patch(empty, { title: null })).json.thread.title).toBeNull();
  });

  test('null restores the title of a long message that begins with white space', async () => {
    const spaces = ' \t\n\u00a0\u3000\ufeff'.repeat(5_000);
    const text = `${spaces} 😀 The title\n${'x'.repeat(1_000)}`;
    const { id } = (await create({ input: { ...input, content: [{ type: 'text', text }] } })).json.thread;
    await patch(id, { title: 'Mine' });
    expect((await patch(id, { title: null })).json.thread.title).toBe('😀 The title');
  });

  test.each([
    ['arrives concurrently', 'Mine', null],
    ['arrives concurrently, although another caller sets a title too', 'Hello', 'Another'],
  ])('null takes the title of a first message that %s', async (_, before, other) => {
    const { id } = (await create({})).json.thread;
    await patch(id, { title: before });
    const spy = jest.spyOn(ThreadReader.prototype, 'findFirstMessage');
    spy.mockImplementationOnce(async (threadId) => {
      const none = await new ThreadReader(api.pool).findFirstMessage(threadId);
      const say = { events: [{ type: 'user_message', text: 'Hello' }] };
      expect((await api.post(`/threads/${id}/events`, { body: say })).status).toBe(200);
      if (other !== null) await patch(id, { title: other });
      return none;
    });
    try {
      expect((await patch(id, { title: null })).json.thread.title).toBe('Hello');
    } finally {
      spy.mockRestore();
    }
  });

  test('that is set again changes the Thread once and adds no log entry', async () => {
    const { id } = (await create({ input })).json.thread;
    const first = await patch(id, { title: 'Mine' });
    const before = await api.rowCounts();
    expect((await patch(id.toLowerCase(), { title: 'Mine' })).text).toBe(first.text);
    expect(await api.rowCounts()).toEqual(before);
    const { events } = (await api.get(`/threads/${id}/events`)).json;
    expect(events.map(({ type }) => type)).toEqual(['user.message', 'session.status']);
  });

  test('can be set on an archived Thread, but not on a TERMINATED one', async () => {
    const { id } = (await create({})).json.thread;
    await api.post(`/threads/${id}/archive`);
    expect((await patch(id, { title: 'Mine' })).status).toBe(200);
    await api.post(`/threads/${id}/unarchive`);
    await api.handler.handle({ threadId: id, commands: [{ type: 'terminate_thread' }] });
    for (const title of ['Yours', 'Mine']) {
      expect((await patch(id, { title })).json.error.code).toBe('idempotency_conflict');
    }
  });

  test.each([
    ['nothing', {}],
    ['an empty one', { title: '' }],
    ['one of 256 characters', { title: 'a'.repeat(256) }],
    ['another field', { title: 'a', status: 'IDLE' }],
  ])('refuses %s', async (_, body) => {
    const { id } = (await create({})).json.thread;
    expect((await patch(id, body)).status).toBe(400);
  });
});
