import { eventually } from '#testing';
import { ApiUnderTest, type Call } from './api-under-test.testing.ts';

let api: ApiUnderTest;
let threadId: string;
let runId: string;
beforeAll(async () => {
  api = await ApiUnderTest.start();
  threadId = await api.newThread({ text: 'hi' });
  runId = (await api.get(`/threads/${threadId}`)).json.run.id;
});
afterAll(() => api.stop());

const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const create = { userId: 'u', input: { type: 'user.message', content: [{ type: 'text', text: 'hi' }] } };
const send = { events: [{ type: 'user_interrupt' }] };

/** The routes of an agent, and the routes of a Thread. */
const ofAgent = (agentId: string): [string, string, object?][] => [
  ['GET', `/agents/${agentId}`],
  ['POST', `/agents/${agentId}/threads`, create],
];
const ofThread = (id: string, run = runId): [string, string, object?][] => [
  ['GET', `/threads/${id}`],
  ['GET', `/threads/${id}/events`],
  ['POST', `/threads/${id}/events`, send],
  ['GET', `/threads/${id}/runs`],
  ['GET', `/threads/${id}/runs/${run}`],
];

/** Expects the same refusal from all routes, and no stored row. */
async function expectAll(routes: [string, string, object?][], call: Call, status: number, code: string) {
  const before = await api.rowCounts();
  for (const [method, path, body] of routes) {
    const reply = await api.call(method, path, { ...call, body });
    expect([method, path, reply.status, reply.json.error.code]).toEqual([method, path, status, code]);
  }
  expect(await api.rowCounts()).toEqual(before);
}

const change = (agentId: string, columns: string) =>
  api.pool.query(`update agents set ${columns} where id = $1`, [agentId]);

/** Waits until the error is returned, because agents and tokens are cached for a short time. */
const becomes = (path: string, call: Call, code: string) =>
  eventually(async () => (await api.get(path, call)).json.error?.code === code, { what: `${path} is ${code}` });

const newToken = (personId: string) => api.access.mintToken({ kind: 'person', personId, name: 'n' });

describe('the token', () => {
  it.each([
    ['missing', { token: null }],
    ['without Bearer', { token: null, headers: { authorization: 'Basic abc' } }],
    ['in a legacy form', { token: 'sk-live-123' }],
    ['that was never created', { token: `spool_pat_${'A'.repeat(48)}` }],
  ])('%s gets 401 with WWW-Authenticate on every route', async (_, call) => {
    await expectAll([...ofAgent(api.agentId), ...ofThread(threadId)], call, 401, 'unauthenticated');
    const { headers } = await api.get(`/threads/${threadId}`, call);
    expect(headers.get('www-authenticate')).toBe('Bearer');
  });

  it('revoked or expired gets 401', async () => {
    const { personId } = api;
    const revoked = await newToken(personId);
    expect((await api.get(`/threads/${threadId}`, { token: revoked.token })).status).toBe(200);
    await api.access.revokeToken(revoked.id);
    await becomes(`/threads/${threadId}`, { token: revoked.token }, 'unauthenticated');
    await expectAll(ofThread(threadId), { token: revoked.token }, 401, 'unauthenticated');
    const expiresAt = new Date(Date.now() - 1);
    const expired = await api.access.mintToken({ kind: 'person', personId, name: 'n', expiresAt });
    await expectAll(ofThread(threadId), { token: expired.token }, 401, 'unauthenticated');
  });
});

describe('an agent', () => {
  it('that is unknown or deleted gets 404', async () => {
    await expectAll(ofAgent(UNKNOWN), {}, 404, 'not_found');
    const deleted = await api.newAgent();
    await change(deleted, 'deleted_at = now()');
    await expectAll(ofAgent(deleted), {}, 404, 'not_found');
  });

  it('without access for the caller gets 403 in every state', async () => {
    const stranger = await api.newPerson({ member: false });
    await expectAll(ofAgent(api.agentId), stranger, 403, 'forbidden');
    const unpublished = await api.newAgent();
    await change(unpublished, 'published = false, api_enabled = false');
    await expectAll(ofAgent(unpublished), stranger, 403, 'forbidden');
    await expectAll(ofAgent(unpublished), {}, 409, 'agent_not_published');
    const invited = await api.newAgent({ ownerPersonId: api.personId, access: 'invited' });
    const member = await api.newPerson();
    await expectAll(ofAgent(invited), member, 403, 'forbidden');
    await api.pool.query('insert into agent_people (agent_id, person_id) values ($1, $2)', [invited, member.personId]);
    const { token } = await newToken(member.personId);
    expect((await api.get(`/agents/${invited}`, { token })).status).toBe(200);
  });

  it('without API access or live version gets service_inactive', async () => {
    for (const columns of ['api_enabled = false', 'live_version = null']) {
      const inactive = await api.newAgent();
      await change(inactive, columns);
      await expectAll(ofAgent(inactive), {}, 409, 'service_inactive');
    }
  });

  it('that the service token does not list gets 403', async () => {
    const { organizationId } = api;
    const other = await api.newAgent();
    const service = { kind: 'service', organizationId, agentIds: [api.agentId], name: 'n' } as const;
    const { token } = await api.access.mintToken(service);
    await expectAll(ofAgent(other), { token }, 403, 'forbidden');
    expect((await api.get(`/agents/${api.agentId}`, { token })).status).toBe(200);
  });

  it('gets 403 for an operator, and a Thread gets 404', async () => {
    const { token } = await api.access.mintToken({ kind: 'operator', name: 'n' });
    await expectAll(ofAgent(api.agentId), { token }, 403, 'forbidden');
    await expectAll(ofThread(threadId), { token }, 404, 'not_found');
  });
});

describe('a Thread', () => {
  it('is visible to the person who created it, by any of their tokens', async () => {
    const { token } = await newToken(api.personId);
    expect((await api.get(`/threads/${threadId}`, { token })).status).toBe(200);
  });

  it('of another person gets 404, with the answer for a missing Thread', async () => {
    const member = await api.newPerson();
    await expectAll(ofThread(threadId), member, 404, 'not_found');
    for (const [method, path, body] of ofThread(threadId)) {
      const foreign = await api.call(method, path, { ...member, body });
      const missing = await api.call(method, path.replace(threadId, UNKNOWN), { ...member, body });
      expect(foreign.text).toBe(missing.text);
      expect([...foreign.headers.keys()]).toEqual([...missing.headers.keys()]);
    }
  });

  it('of a service token is visible only to this token', async () => {
    const { organizationId } = api;
    const wanted = { kind: 'service', organizationId, agentIds: [api.agentId], name: 'n' } as const;
    const [one, other] = [await api.access.mintToken(wanted), await api.access.mintToken(wanted)];
    const own = await api.newThread({ token: one.token });
    expect((await api.get(`/threads/${own}`, one)).status).toBe(200);
    await expectAll(ofThread(own), other, 404, 'not_found');
    await expectAll(ofThread(own), {}, 404, 'not_found');
    await expectAll(ofThread(threadId), one, 404, 'not_found');
  });

  it('follows the state of its agent, for reads and writes', async () => {
    const states: [string, number, string][] = [
      ['published = false', 409, 'agent_not_published'],
      ['api_enabled = false', 409, 'service_inactive'],
      [`access = 'invited'`, 403, 'forbidden'],
      ['deleted_at = now()', 404, 'not_found'],
    ];
    const threads = await Promise.all(
      states.map(async ([columns]) => {
        const agentId = await api.newAgent();
        const id = await api.newThread({ agentId, text: 'hi' });
        const run = (await api.get(`/threads/${id}`)).json.run.id;
        await change(agentId, columns);
        return { id, run };
      }),
    );
    for (const [i, [, status, code]] of states.entries()) {
      const { id, run } = threads[i]!;
      await becomes(`/threads/${id}`, {}, code);
      await expectAll(ofThread(id, run), {}, status, code);
    }
  });

  it.each(['published = false', 'api_enabled = false', 'live_version = null'])(
    'can be deleted only by its owner, in every state, while its agent has %s',
    async (columns) => {
      const agentId = await api.newAgent();
      const threads = await Promise.all(
        [undefined, 'running', 'waiting', 'archived', 'terminated'].map((text) =>
          api.newThread({ agentId, ...(text && { text }) }),
        ),
      );
      const [, running = '', waiting = '', archived = '', terminated = ''] = threads;
      const runOf = async (id: string) => (await api.get(`/threads/${id}`)).json.run.id;
      await api.startRun(running, await runOf(running));
      await api.ask(waiting, await runOf(waiting));
      await api.completeRun(archived, await runOf(archived));
      await api.happen(archived, { type: 'archive' });
      await api.happen(terminated, { type: 'terminate_thread' });
      await change(agentId, columns);
      await eventually(async () => (await api.get(`/agents/${agentId}`)).status === 409, { what: 'it is seen' });
      const stranger = await api.newPerson();
      for (const id of threads) {
        expect((await api.get(`/threads/${id}`)).status).toBe(409);
        expect((await api.call('DELETE', `/threads/${id}`, stranger)).status).toBe(404);
        const deleted = await api.call('DELETE', `/threads/${id}`);
        expect([deleted.status, deleted.text]).toEqual([200, '{"ok":true}']);
        expect((await api.get(`/threads/${id}`)).status).toBe(404);
        expect((await api.call('DELETE', `/threads/${id}`)).status).toBe(404);
      }
    },
  );

  it('cannot be deleted by an owner without access to its agent, or after the agent is deleted', async () => {
    for (const [columns, status, code] of [
      [`access = 'invited'`, 403, 'forbidden'],
      [`access = 'invited', published = false`, 403, 'forbidden'],
      ['deleted_at = now()', 404, 'not_found'],
    ] as const) {
      const agentId = await api.newAgent();
      const id = await api.newThread({ agentId });
      await change(agentId, columns);
      await becomes(`/threads/${id}`, {}, code);
      await expectAll([['DELETE', `/threads/${id}`]], {}, status, code);
    }
  });

  it('of a person who left the organization gets 403', async () => {
    const member = await api.newPerson();
    const id = await api.newThread(member);
    await api.pool.query('delete from memberships where person_id = $1', [member.personId]);
    const { token } = await newToken(member.personId);
    await expectAll(ofThread(id), { token }, 403, 'forbidden');
  });
});

describe('the order of checks', () => {
  const wrongId = 'x';
  const badJson = '{';

  it('is token, path and query, body, access, idempotency, operation', async () => {
    const { token: stranger } = await api.newPerson({ member: false });
    const notReady = await api.newAgent({}, { harness: { name: 'missing' } });
    const used = { 'idempotency-key': 'order' };
    await api.post(`/agents/${api.agentId}/threads`, { body: create, headers: used });
    const steps: [string, Call, number, string][] = [
      [`/agents/${wrongId}/threads`, { token: null, body: badJson }, 401, 'unauthenticated'],
      [`/agents/${wrongId}/threads`, { body: badJson }, 400, 'invalid_request'],
      [`/agents/${UNKNOWN}/threads`, { body: badJson, headers: { 'idempotency-key': '' } }, 400, 'invalid_request'],
      [`/agents/${UNKNOWN}/threads`, { body: badJson }, 400, 'invalid_json'],
      [`/agents/${UNKNOWN}/threads`, { body: {} }, 400, 'invalid_request'],
      [`/agents/${UNKNOWN}/threads`, { body: create, headers: used }, 404, 'not_found'],
      [`/agents/${notReady}/threads`, { token: stranger, body: create, headers: used }, 403, 'forbidden'],
      [`/agents/${notReady}/threads`, { body: create, headers: used }, 409, 'idempotency_conflict'],
      [`/agents/${notReady}/threads`, { body: create }, 409, 'readiness_blocked'],
    ];
    for (const [path, call, status, code] of steps) {
      const reply = await api.post(path, call);
      expect([path, call, reply.status, reply.json.error.code]).toEqual([path, call, status, code]);
    }
  });
});
