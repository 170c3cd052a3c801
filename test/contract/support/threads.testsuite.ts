import type { Thread } from './client.ts';
import { DATE_TIME, decide, interrupt, message, refusal, ULID, UNKNOWN, userMessage, type World } from './world.ts';

const CONTRACT_FIELDS = [
  ...['id', 'agent_id', 'userId', 'kind', 'source', 'status', 'title', 'last_run_id', 'created_at', 'updated_at'],
];

/**
 * Creating, reading, archiving and deleting Threads, and what an Agent shows of itself
 * (docs/spec/agent-threads-api.md#thread-threadsummary, docs/spec/agent-threads-api.md#endpoints, docs/spec/decisions.md#routes, docs/spec/decisions.md#amendments).
 */
export function describeThreads(world: World): void {
  describe('threads', () => {
    describe('Thread (ThreadSummary)', () => {
      let empty: Thread;
      let answered: Thread;
      beforeAll(async () => {
        empty = await world.newThread({ userId: 'kim' });
        answered = (await world.endedThread({ text: 'Hello, Spool', userId: '😀'.repeat(255) })).thread;
      });

      test('id: ulid', () =>
        expect([empty.id, answered.id]).toEqual([expect.stringMatching(ULID), expect.stringMatching(ULID)]));
      test('agent_id: the Agent the Thread belongs to', () => expect(empty.agent_id).toBe(world.agentId));
      test('userId: opaque, 1..255, as supplied, immutable', () => {
        expect([empty.userId, answered.userId]).toEqual(['kim', '😀'.repeat(255)]);
      });
      test('kind: pet or cattle, the kind of the Agent', async () => {
        expect(empty.kind).toBe('cattle');
        const agentId = await world.newAgent({ kind: 'pet' });
        expect((await world.newThread({ agentId })).kind).toBe('pet');
      });
      test('source: always api', () => expect([empty.source, answered.source]).toEqual(['api', 'api']));
      test('status: IDLE, RUNNING, …', async () => {
        const { thread } = await world.waitingThread();
        expect([empty.status, answered.status, thread.status]).toEqual(['IDLE', 'IDLE', 'RUNNING']);
      });
      test('title: null until one is derived', () => {
        expect([empty.title, answered.title]).toEqual([null, 'Hello, Spool']);
      });
      test('last_run_id: the most recent Run, null if none exists', async () => {
        const { json } = await world.client.get(`/threads/${answered.id}`);
        expect([empty.last_run_id, answered.last_run_id]).toEqual([null, json.run.id]);
      });
      test('created_at, updated_at: date-time', () => {
        for (const at of [empty.created_at, empty.updated_at]) expect(at).toMatch(DATE_TIME);
        expect(Date.parse(answered.updated_at)).toBeGreaterThanOrEqual(Date.parse(answered.created_at));
      });
    });

    describe('externalRef, a title that is set, and the optional fields', () => {
      const create = (externalRef: string) =>
        world.client.post(`/agents/${world.agentId}/threads`, { userId: 'kim', externalRef });

      test('by default a Thread has exactly the fields of the contract in every answer', async () => {
        const { json } = await create('order 1');
        const { id } = json.thread;
        const titled = await world.client.call('PATCH', `/threads/${id}`, { json: { title: 'Order 1' } });
        const sent = await world.send(id, userMessage('hi'));
        const listed = (await world.client.get('/threads?externalRef=order%201')).json.threads;
        expect(listed).toHaveLength(1);
        const read = (await world.client.get(`/threads/${id}`)).json.thread;
        for (const thread of [json.thread, titled.json.thread, sent.json.thread, read, ...listed]) {
          expect(Object.keys(thread)).toEqual(CONTRACT_FIELDS);
        }
      });

      test('with extended=true it has its reference and its last message', async () => {
        const { thread } = (await create('order 2')).json;
        const read = async () => (await world.client.get(`/threads/${thread.id}?extended=true`)).json.thread;
        expect(await read()).toEqual({ ...thread, externalRef: 'order 2', lastMessage: null });
        await world.send(thread.id, userMessage('hi'));
        await world.ended(thread.id);
        const lastMessage = {
          role: 'agent',
          text: 'You said: hi',
          createdAt: expect.stringMatching(DATE_TIME) as string,
        };
        expect(await read()).toMatchObject({ externalRef: 'order 2', lastMessage });
      });

      test('a second Thread with the reference is 409 idempotency_conflict', async () => {
        const { thread } = (await create('order 3')).json;
        const again = await create('order 3');
        expect(refusal(again)).toEqual([409, 'idempotency_conflict']);
        expect(again.json.error.message).toContain(thread.id);
      });
    });

    test('ThreadLinks: thread is the absolute URL of the Thread, and leads there', async () => {
      const { json } = await world.create();
      expect(json.links).toEqual({ thread: `${world.client.baseUrl}/threads/${json.thread.id}` });
      const response = await fetch(json.links.thread, { headers: { authorization: `Bearer ${world.owner.token}` } });
      expect(((await response.json()) as { thread: Thread }).thread).toEqual(json.thread);
      expect((await world.client.get(`/threads/${json.thread.id}`)).json.links).toEqual(json.links);
    });

    describe('POST /agents/{agentId}/threads (201)', () => {
      test('without input: IDLE, no Run is created, run and last_run_id are null', async () => {
        const { status, json } = await world.create();
        expect(status).toBe(201);
        expect([json.thread.status, json.thread.last_run_id, json.run]).toEqual(['IDLE', null, null]);
        expect((await world.client.get(`/threads/${json.thread.id}/runs`)).json.runs).toEqual([]);
      });

      test('with input: the initial Run is queued, the Thread is returned with that Run', async () => {
        const { status, json } = await world.create({ text: 'hi' });
        expect(status).toBe(201);
        expect(json.run).toMatchObject({ status: 'queued', trigger: 'user_prompt' });
        expect(json.thread).toMatchObject({ last_run_id: json.run.id, status: 'RUNNING' });
      });

      test.each([
        ['userId: required', { input: message('a') }],
        ['userId: a string', { userId: 7 }],
        ['userId: at least 1 character', { userId: '' }],
        ['userId: at most 255 characters', { userId: 'u'.repeat(256) }],
        ['input: an object', { userId: 'u', input: 'hi' }],
        ['input.type: required', { userId: 'u', input: { content: [{ type: 'text', text: 'a' }] } }],
        ['input.type: constant user.message', { userId: 'u', input: { ...message('a'), type: 'user_message' } }],
        ['input.content: required', { userId: 'u', input: { type: 'user.message' } }],
        ['input.content: min 1 item', { userId: 'u', input: message() }],
        [
          'input.content: items of type text',
          { userId: 'u', input: { type: 'user.message', content: [{ type: 'image', text: 'a' }] } },
        ],
        ['input.content: text at least 1 character', { userId: 'u', input: message('') }],
        ['input.content: text at most 32000 characters', { userId: 'u', input: message('a'.repeat(32_001)) }],
        [
          'input.content: no additional properties',
          { userId: 'u', input: { type: 'user.message', content: [{ type: 'text', text: 'a', x: 1 }] } },
        ],
        ['input: no additional properties', { userId: 'u', input: { ...message('a'), role: 'user' } }],
        ['resources: an array', { userId: 'u', resources: {} }],
        ['no additional properties', { userId: 'u', title: 'mine' }],
        ['older names: client_external_ref is unknown', { userId: 'u', client_external_ref: 'x' }],
        ['older names: attributed_user_id is unknown', { userId: 'u', attributed_user_id: 'x' }],
      ])('body: %s, else 400 invalid_request, and nothing is made', async (_, body) => {
        const before = await world.rowCounts();
        const reply = await world.client.post(`/agents/${world.agentId}/threads`, body);
        expect(refusal(reply)).toEqual([400, 'invalid_request']);
        expect(await world.rowCounts()).toEqual(before);
      });

      test('body: text of 1 and of 32000 characters, userId of 1 and of 255; every character is kept', async () => {
        const path = `/agents/${world.agentId}/threads`;
        for (const [userId, text] of [
          ['u', 'a'],
          ['😀'.repeat(255), '😀'.repeat(32_000)],
          ['u', '😀 \u2028 "quoted" \\ \u0001 \u{10FFFF} é'],
        ] as const) {
          const { status, json } = await world.client.post(path, { userId, input: message(text) });
          expect(status).toBe(201);
          expect((await world.entry(json.thread.id, 'user.message')).content).toBe(text);
        }
      });

      test('input.content parts are joined by \\n into one message', async () => {
        const body = { userId: 'u', input: message('one', 'two', 'three') };
        const { json } = await world.client.post(`/agents/${world.agentId}/threads`, body);
        expect((await world.entry(json.thread.id, 'user.message')).content).toBe('one\ntwo\nthree');
        expect((await world.log(json.thread.id)).filter(({ type }) => type === 'user.message')).toHaveLength(1);
      });
    });

    describe('GET /threads/{threadId}', () => {
      test('run is null when no Run exists', async () => {
        const created = await world.create();
        const read = await world.client.get(`/threads/${created.json.thread.id}`);
        expect([read.status, read.json]).toEqual([200, created.json]);
      });

      test('run is the most recent Run', async () => {
        const { thread, run } = await world.endedThread();
        const { json } = await world.send(thread.id, userMessage('again'));
        const second = json.events[0]!.run;
        const ended = await world.ended(thread.id);
        expect(second.id).not.toBe(run.id);
        expect([ended.run.id, ended.thread.last_run_id]).toEqual([second.id, second.id]);
      });

      test('ids are accepted in either case, answered in upper case', async () => {
        const { thread, run } = await world.endedThread();
        for (const [path, id] of [
          [`/threads/${thread.id.toLowerCase()}`, thread.id],
          [`/threads/${thread.id.toLowerCase()}/runs/${run.id.toLowerCase()}`, run.id],
          [`/agents/${world.agentId.toLowerCase()}`, world.agentId],
        ] as const) {
          const { status, json } = await world.client.get(path);
          expect([status, (json.thread ?? json.run ?? json.agent).id]).toEqual([200, id]);
        }
        const made = await world.newThread({ agentId: world.agentId.toLowerCase() });
        expect(made.agent_id).toBe(world.agentId);
      });
    });

    describe('GET /agents/{agentId}', () => {
      test('{id, name, kind, published, description}, nothing of its configuration', async () => {
        const { status, json } = await world.client.get(`/agents/${world.agentId}`);
        expect(status).toBe(200);
        expect(json).toEqual({
          agent: { id: world.agentId, name: 'echo', kind: 'cattle', published: true, description: 'Says it again.' },
        });
      });
    });

    describe('archive and unarchive', () => {
      const archive = (id: string) => world.client.post(`/threads/${id}/archive`);
      const unarchive = (id: string) => world.client.post(`/threads/${id}/unarchive`);

      test('POST …/archive: no body, 200 {ok: true}, and idempotent', async () => {
        const { id } = await world.newThread();
        for (const _ of [1, 2]) {
          const { status, json } = await archive(id);
          expect([status, json]).toEqual([200, { ok: true }]);
        }
        expect((await world.log(id)).map(({ content }) => content)).toEqual(['archived']);
      });

      test('POST …/unarchive: no body, 200 {ok: true}, and idempotent; restored to active lists', async () => {
        const agentId = await world.newAgent();
        const { id } = await world.newThread({ agentId });
        const listed = async () =>
          (await world.client.get(`/agents/${agentId}/threads`)).json.threads.map((one) => one.id);
        await archive(id);
        expect(await listed()).toEqual([]);
        for (const _ of [1, 2]) {
          const { status, json } = await unarchive(id);
          expect([status, json]).toEqual([200, { ok: true }]);
        }
        expect(await listed()).toEqual([id]);
        expect((await world.log(id)).map(({ content }) => content)).toEqual(['archived', 'unarchived']);
        expect((await world.send(id, userMessage('hi'))).status).toBe(200);
      });

      test('an archived Thread can be read', async () => {
        const { thread } = await world.endedThread();
        await archive(thread.id);
        for (const path of ['', '/events', '/runs', '/files']) {
          expect((await world.client.get(`/threads/${thread.id}${path}`)).status).toBe(200);
        }
      });

      test('any event to an archived Thread is 409 idempotency_conflict', async () => {
        const { thread, run } = await world.endedThread();
        await archive(thread.id);
        const before = await world.log(thread.id);
        for (const event of [userMessage('hi'), interrupt(), decide('r1'), interrupt({ runId: run.id })]) {
          const reply = await world.send(thread.id, event);
          expect(refusal(reply)).toEqual([409, 'idempotency_conflict']);
          expect(reply.json.error.message).toContain('archived');
        }
        expect(await world.log(thread.id)).toEqual(before);
      });

      test('archiving a Thread with an active Run is 409 idempotency_conflict', async () => {
        const { thread } = await world.waitingThread();
        expect(refusal(await archive(thread.id))).toEqual([409, 'idempotency_conflict']);
        expect((await world.send(thread.id, interrupt())).status).toBe(200);
        expect((await archive(thread.id)).status).toBe(200);
      });

      test('updated_at changes when the archived state does', async () => {
        const { id, updated_at } = await world.newThread();
        const updatedAt = async () => Date.parse((await world.client.get(`/threads/${id}`)).json.thread.updated_at);
        await archive(id);
        const archivedAt = await updatedAt();
        expect(archivedAt).toBeGreaterThan(Date.parse(updated_at));
        await unarchive(id);
        expect(await updatedAt()).toBeGreaterThan(archivedAt);
      });
    });

    describe('DELETE /threads/{threadId} (what remains of one: the area deletion)', () => {
      test('200 {ok: true}, then 404 like one that never was', async () => {
        const { thread } = await world.endedThread();
        const { status, json } = await world.client.delete(`/threads/${thread.id}`);
        expect([status, json]).toEqual([200, { ok: true }]);
        const gone = await world.client.get(`/threads/${thread.id}`);
        expect([gone.status, gone.text]).toEqual([404, (await world.client.get(`/threads/${UNKNOWN}`)).text]);
        expect(refusal(await world.client.delete(`/threads/${thread.id}`))).toEqual([404, 'not_found']);
      });

      test('in any state: with an active Run, archived, empty', async () => {
        const { thread: waiting } = await world.waitingThread();
        const archived = await world.newThread();
        await world.client.post(`/threads/${archived.id}/archive`);
        for (const { id } of [waiting, archived, await world.newThread()]) {
          expect((await world.client.delete(`/threads/${id}`)).json).toEqual({ ok: true });
          expect(refusal(await world.client.get(`/threads/${id}`))).toEqual([404, 'not_found']);
        }
      });
    });
  });
}
