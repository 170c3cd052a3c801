import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CompatibleThread, ThreadSummary } from '#contract';
import { rebuild, verify } from '#projections';
import { eventually } from '#testing';
import { ApiUnderTest, holding, type Reply } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL, the disk. Two processes on one database, with COMPATIBILITY_FIELDS on and off.

const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const docs = join(import.meta.dirname, '../../docs/api');
const input = { type: 'user.message', content: [{ type: 'text', text: 'hi' }] };

let folder: string;
let on: ApiUnderTest;
let off: ApiUnderTest;
let service: { id: string; token: string };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-compatibility-'));
  const BLOB_URL = pathToFileURL(folder).href;
  on = await ApiUnderTest.start({ settings: { COMPATIBILITY_FIELDS: 'on', BLOB_URL } });
  off = await ApiUnderTest.start({ settings: { BLOB_URL }, through: async () => on.databaseUrl });
  service = await newService();
});

afterAll(async () => {
  await off.stop();
  await on.stop();
  await rm(folder, { recursive: true });
});

const newService = ({ allowAttribution = true, agentId = on.agentId } = {}) => {
  const { organizationId, access } = on;
  return access.mintToken({ kind: 'service', organizationId, agentIds: [agentId], allowAttribution, name: 'n' });
};

/** Creates a Thread with the service token, unless another token is given. */
const create = (fields: object, { token = service.token, agentId = on.agentId, key = '', api = on } = {}) =>
  api.post(`/agents/${agentId}/threads`, {
    token,
    body: { userId: 'u', ...fields },
    headers: key === '' ? {} : { 'idempotency-key': key },
  });
const send = (threadId: string, events: object[], { token = service.token, key = '', api = on } = {}) =>
  api.post(`/threads/${threadId}/events`, {
    token,
    body: { events },
    headers: key === '' ? {} : { 'idempotency-key': key },
  });
const list = async (api: ApiUnderTest, token: string, agentId = on.agentId) => {
  const { json } = await api.get(`/agents/${agentId}/threads`, { token });
  return (json as unknown as { threads: (ThreadSummary & Partial<CompatibleThread>)[] }).threads;
};

async function expectRefused(attempt: () => Promise<Reply>, status: number, message: string): Promise<void> {
  const before = await on.rowCounts();
  const { status: got, json } = await attempt();
  expect([got, json.error.message]).toEqual([status, message]);
  expect(await on.rowCounts()).toEqual(before);
}

/** Creates a Thread of the service token for a new member, with a Run. */
async function attributed({ agentId = on.agentId, token = service.token } = {}) {
  const person = await on.newPerson();
  const { json } = await create({ input, attributed_user_id: person.personId }, { agentId, token });
  return { person, threadId: json.thread.id };
}

describe('off', () => {
  it.each<[string, object, string]>([
    ['client_external_ref', { client_external_ref: 'x' }, 'body: Unrecognized key: "client_external_ref"'],
    ['attributed_user_id', { attributed_user_id: UNKNOWN }, 'body: Unrecognized key: "attributed_user_id"'],
    [
      'both, and an unknown field',
      { client_external_ref: 7, attributed_user_id: 7, x: 1 },
      'body: Unrecognized keys: "client_external_ref", "attributed_user_id", "x"',
    ],
  ])('refuses a Thread with %s', async (_, fields, message) => {
    for (const token of [service.token, on.token]) {
      await expectRefused(() => create(fields, { token, api: off }), 400, message);
    }
  });

  it('refuses a message with clientRequestId', async () => {
    const threadId = await on.newThread(service);
    const message = 'body.events.0: Unrecognized key: "clientRequestId"';
    const events = [{ type: 'user_message', text: 'a', clientRequestId: 'x' }];
    await expectRefused(() => send(threadId, events, { api: off }), 400, message);
  });

  it('omits the older fields, also for Threads created with them', async () => {
    const { person, threadId } = await attributed();
    const fields = ['id', 'agent_id', 'userId', 'kind', 'source', 'status', 'title', 'last_run_id'];
    const all = [...fields, 'created_at', 'updated_at'];
    const made = await create({}, { api: off });
    const sent = await send(made.json.thread.id, [{ type: 'user_message', text: 'a', requestId: 'r' }], { api: off });
    const read = await off.get(`/threads/${threadId}`, person);
    const [listed] = await list(off, person.token);
    for (const { thread } of [made.json, sent.json, read.json, { thread: listed! }]) {
      expect(Object.keys(thread)).toEqual(all);
    }
    expect([listed!.id, read.status]).toEqual([threadId, 200]);
    expect(Object.keys(sent.json.events[0]!)).toEqual(['type', 'requestId', 'run']);
  });

  it('serves the document in docs/api/openapi.json; on serves another one', async () => {
    const checkedIn = JSON.parse(await readFile(join(docs, 'openapi.json'), 'utf8')) as object;
    expect((await off.get('/openapi.json', { token: null })).json).toEqual(checkedIn);
    const { json } = await on.get('/openapi.json', { token: null });
    expect(json).not.toEqual(checkedIn);
    const { schemas } = (json as unknown as { components: { schemas: Record<string, object> } }).components;
    expect(schemas['ThreadSummary']).toHaveProperty('properties.created_by');
    expect(schemas['UserMessage']).toHaveProperty('properties.clientRequestId');
  });
});

describe('answers', () => {
  /** Returns the older fields of a Thread from every answer that has it. */
  async function olderFieldsOf(made: Reply, token: string): Promise<unknown[]> {
    const { id } = made.json.thread;
    const read = await on.get(`/threads/${id}`, { token });
    const sent = await send(id, [{ type: 'user_message', text: 'a' }], { token });
    const listed = (await list(on, token)).find((thread) => thread.id === id);
    return [made.json.thread, read.json.thread, sent.json.thread, listed].map((thread) => {
      const { client_external_ref, attributed_user, created_by } = thread as unknown as CompatibleThread;
      return { client_external_ref, attributed_user, created_by };
    });
  }
  const everywhere = (fields: CompatibleThread) => Array.from({ length: 4 }, () => fields);

  it('name the person who created a Thread', async () => {
    const made = await create({ client_external_ref: '"ticket" \\ 😀' }, on);
    const created_by = { id: on.personId };
    const expected = { client_external_ref: '"ticket" \\ 😀', attributed_user: null, created_by };
    expect(await olderFieldsOf(made, on.token)).toEqual(everywhere(expected));
  });

  it('name the service token that created a Thread, without an attributed person', async () => {
    const expected = { client_external_ref: null, attributed_user: null, created_by: { id: service.id } };
    expect(await olderFieldsOf(await create({}), service.token)).toEqual(everywhere(expected));
  });

  it('name the person of an attributed Thread, for the person and for the service token', async () => {
    const { personId, token } = await on.newPerson();
    const made = await create({ client_external_ref: 'same', attributed_user_id: personId.toLowerCase() });
    const created_by = { id: service.id };
    const expected = { client_external_ref: 'same', attributed_user: { id: personId }, created_by };
    expect(await olderFieldsOf(made, service.token)).toEqual(everywhere(expected));
    expect((await on.get(`/threads/${made.json.thread.id}`, { token })).json.thread).toMatchObject(expected);
  });

  it('have a null reference for a Thread stored without one', async () => {
    const made = await create({}, { api: off });
    expect(made.json.thread).not.toHaveProperty('client_external_ref');
    const { json } = await on.get(`/threads/${made.json.thread.id}`, service);
    expect(json.thread).toMatchObject({ client_external_ref: null, created_by: { id: service.id } });
  });

  it('match docs/api/compatibility.md', async () => {
    const page = await readFile(join(docs, 'compatibility.md'), 'utf8');
    const { personId } = await on.newPerson();
    const examples = [...page.matchAll(/(?:^ {4}.*\n)+/gm)].map(([text]) => {
      const ids = text.replaceAll('01KAJ0S3PAR5T7V9X1Z3B5D7F9', personId).replaceAll(/01KAJ0SVC\w+/g, service.id);
      return JSON.parse(ids) as object;
    });
    expect(examples).toHaveLength(4);
    const [body, thread, batch, result] = examples as [object, object, { events: object[] }, object];
    const made = await create(body);
    expect(made.json.thread).toMatchObject(thread);
    expect((await send(made.json.thread.id, batch.events)).json.events).toEqual([holding(result)]);
  });
});

describe('clientRequestId', () => {
  const results = ({ json }: Reply) =>
    (json.events as unknown as Record<string, unknown>[]).map((one) => [one['requestId'], one['clientRequestId']]);

  it.each<[string, object, string | null]>([
    ['alone', { clientRequestId: 'a' }, 'a'],
    ['with an equal requestId', { clientRequestId: 'a', requestId: 'a' }, 'a'],
    ['with a requestId of null', { clientRequestId: 'a', requestId: null }, 'a'],
    ['of null, with a requestId', { clientRequestId: null, requestId: 'a' }, 'a'],
    ['of null', { clientRequestId: null }, null],
    ['that is left out', {}, null],
  ])('%s is returned by both names', async (_, fields, echoed) => {
    const threadId = await on.newThread(service);
    const sent = await send(threadId, [{ type: 'user_message', text: 'a', ...fields }, { type: 'user_interrupt' }]);
    expect(results(sent)).toEqual([
      [echoed, echoed],
      [null, null],
    ]);
  });

  it('different from requestId gets 400', async () => {
    const threadId = await on.newThread(service);
    const events = [{ type: 'user_message', text: 'a', clientRequestId: 'a', requestId: 'b' }];
    const message = 'body.events.0.clientRequestId: must be the same as requestId';
    await expectRefused(() => send(threadId, events), 400, message);
  });

  it('is in the result of a permission decision, but not accepted as its input', async () => {
    const { thread, run } = (await create({ input })).json;
    await on.startRun(thread.id, run.id);
    const requests = [{ requestId: 'R', toolCallId: 'T' }];
    await on.happen(thread.id, { type: 'wait_for_decisions', runId: run.id, attempt: 1, requests });
    const decision = { type: 'permission_decision', requestId: 'R', decision: 'allow_once' };
    const unknown = 'body.events.0: Unrecognized key: "clientRequestId"';
    await expectRefused(() => send(thread.id, [{ ...decision, clientRequestId: 'R' }]), 400, unknown);
    expect(results(await send(thread.id, [decision]))).toEqual([['R', 'R']]);
  });
});

describe('attributed_user_id', () => {
  const MAY_NOT = 'The caller cannot create Threads for a person.';
  const NO_MEMBER = 'body.attributed_user_id: must be a member of the organization';

  it('gets 403 for a token without attribution, also for the caller itself', async () => {
    const { token } = await newService({ allowAttribution: false });
    const fields = { attributed_user_id: on.personId };
    await expectRefused(() => create(fields, { token }), 403, MAY_NOT);
    await expectRefused(() => create(fields, { token: on.token }), 403, MAY_NOT);
  });

  it('is refused after the Agent, and before the key and the operation', async () => {
    const fields = { attributed_user_id: UNKNOWN };
    await expectRefused(() => create(fields, { token: on.token, agentId: UNKNOWN }), 404, 'The Agent was not found.');
    const others = await on.newAgent();
    await expectRefused(() => create(fields, { agentId: others }), 403, 'The caller has no access to this Agent.');
    const notReady = await on.newAgent({}, { harness: { name: 'missing' } });
    await create({}, { token: on.token, key: 'used' });
    const late = { token: on.token, agentId: notReady, key: 'used' };
    await expectRefused(() => create({ ...fields, input }, late), 403, MAY_NOT);
  });

  it('gets the same 400 for a non-member and for an unknown person', async () => {
    const { personId } = await on.newPerson({ member: false });
    const elsewhere = await on.access.createOrganization('Other');
    await on.access.addMember(elsewhere, personId);
    for (const id of [personId, UNKNOWN, service.id]) {
      const key = `no member ${id}`;
      await expectRefused(() => create({ input, attributed_user_id: id }, { key }), 400, NO_MEMBER);
    }
  });

  it('replays the stored answer after the person has left, and gets 403 once the token loses attribution', async () => {
    const { id, token } = await newService();
    const { personId } = await on.newPerson();
    const again = () => create({ attributed_user_id: personId, input }, { token, key: 'left' });
    const first = await again();
    expect(first.status).toBe(201);
    await on.pool.query('delete from memberships where person_id = $1', [personId]);
    const replayed = await again();
    expect([replayed.status, replayed.text]).toEqual([201, first.text]);
    await on.pool.query('update tokens set allow_attribution = false where id = $1', [id]);
    await eventually(async () => (await again()).status === 403, { what: 'the token has lost attribution' });
  });

  it('gives the person no access to the Agent', async () => {
    const agentId = await on.newAgent({ access: 'invited' });
    const { token } = await newService({ agentId });
    const { person, threadId } = await attributed({ agentId, token });
    expect((await on.get(`/threads/${threadId}`, person)).status).toBe(403);
  });
});

describe('an attributed Thread', () => {
  /** Returns the status of each way to read the Thread. */
  async function statuses(threadId: string, fileId: string, token: string): Promise<number[]> {
    const authorization = `Bearer ${token}`;
    const raw = (path: string) => fetch(`${on.url}${path}`, { headers: { authorization } });
    const paths = [`/threads/${threadId}`, `/threads/${threadId}/events`, `/threads/${threadId}/runs`];
    const files = [`/threads/${threadId}/files`, `/files/${fileId}`];
    const read = await Promise.all([...paths, ...files].map((path) => on.get(path, { token })));
    const bytes = await raw(`/files/${fileId}/content`);
    const stream = await raw(`/threads/${threadId}/events/stream?until=idle`);
    const text = await stream.text();
    if (stream.ok) expect(text).toContain('event: thread.idle');
    return [...read, bytes, stream].map(({ status }) => status);
  }
  const all = (status: number) => Array.from({ length: 7 }, () => status);

  async function newDraft(token: string, agentId: string): Promise<string> {
    const form = new FormData();
    form.append('file', new Blob(['bytes']), 'note.txt');
    const { json } = await on.call('POST', `/agents/${agentId}/files`, { token, form });
    return (json as unknown as { file: { id: string } }).file.id;
  }

  const resources = (file_id: string) => ({ resources: [{ type: 'file', file_id }] });

  it('is visible only to the person and the token, in lists, streams and files', async () => {
    const agentId = await on.newAgent();
    const { id, token } = await newService({ agentId });
    const { token: otherToken } = await newService({ agentId });
    const [person, colleague] = [await on.newPerson(), await on.newPerson()];
    const fileId = await newDraft(token, agentId);
    const fields = { attributed_user_id: person.personId, ...resources(fileId) };
    const threadId = (await create(fields, { token, agentId })).json.thread.id;
    for (const own of [token, person.token]) {
      expect(await statuses(threadId, fileId, own)).toEqual(all(200));
      expect((await list(on, own, agentId)).map((thread) => thread.id)).toEqual([threadId]);
    }
    for (const others of [otherToken, colleague.token, on.token]) {
      expect(await statuses(threadId, fileId, others)).toEqual(all(404));
      expect(await list(on, others, agentId)).toEqual([]);
    }
    const event = [{ type: 'user_message', text: 'by the person' }];
    expect((await send(threadId, event, person)).json.thread).toMatchObject({ created_by: { id } });
    await on.pool.query(`update agents set access = 'invited' where id = $1`, [agentId]);
    await eventually(async () => (await on.get(`/threads/${threadId}`, person)).status === 403, {
      what: 'the person has lost the Agent',
    });
    await send(threadId, [{ type: 'user_interrupt' }], { token });
    expect(await statuses(threadId, fileId, person.token)).toEqual(all(403));
    expect((await on.get(`/agents/${agentId}/threads`, person)).status).toBe(403);
    expect(await statuses(threadId, fileId, token)).toEqual(all(200));
  });

  it('accepts drafts of the token, but not of the person', async () => {
    const { personId, token } = await on.newPerson();
    const draft = await newDraft(token, on.agentId);
    const fields = { attributed_user_id: personId, input };
    const message = `There is no draft file ${draft}.`;
    await expectRefused(() => create({ ...fields, ...resources(draft) }), 400, message);
    expect((await create({ ...fields, ...resources(await newDraft(service.token, on.agentId)) })).status).toBe(201);
  });

  it('is created once for each key, and its fields are part of the request', async () => {
    const { personId } = await on.newPerson();
    const fields = { input, client_external_ref: 'ticket', attributed_user_id: personId };
    const first = await create(fields, { key: 'once' });
    const before = await on.rowCounts();
    const again = await create({ ...fields, attributed_user_id: personId.toLowerCase() }, { key: 'once' });
    expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([201, first.text, 'true']);
    const others = [{ client_external_ref: 'other' }, { client_external_ref: undefined }];
    for (const other of [...others, { attributed_user_id: undefined }]) {
      expect((await create({ ...fields, ...other }, { key: 'once' })).status).toBe(409);
    }
    expect(await on.rowCounts()).toEqual(before);
    const events = (clientRequestId: string) => [
      { type: 'user_interrupt' },
      { type: 'user_message', text: 'a', clientRequestId },
    ];
    const { id } = first.json.thread;
    const sent = await send(id, events('a'), { key: 'sent' });
    const sentAgain = await send(id, events('a'), { key: 'sent' });
    expect([sent.status, sentAgain.text]).toEqual([200, sent.text]);
    expect((await send(id, events('b'), { key: 'sent' })).status).toBe(409);
  });

  it('stores the reference only if one was given, and matches its stream', async () => {
    const { personId } = await on.newPerson();
    const fields = { attributed_user_id: personId };
    const dataOf = async (more: object) => {
      const { json } = await create({ ...fields, ...more });
      const created = `select data from events where thread_id = $1 and type = 'thread.created'`;
      return (await on.pool.query<{ data: object }>(created, [json.thread.id])).rows[0]!.data;
    };
    const owner = { personId, serviceTokenId: service.id };
    expect(await dataOf({})).toEqual(holding({ owner }));
    expect(await dataOf({})).not.toHaveProperty('clientExternalRef');
    expect(await dataOf({ client_external_ref: 'ticket' })).toEqual(holding({ owner, clientExternalRef: 'ticket' }));
    expect(await verify(on.pool)).toMatchObject({ found: 0 });
    expect(await rebuild(on.pool)).toMatchObject({ differences: 0, left: 0 });
  });
});
