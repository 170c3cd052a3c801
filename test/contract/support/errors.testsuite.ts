import { connect } from 'node:net';
import { eventually, faultProxy } from '#testing';
import type { Client } from './client.ts';
import { message, refusal, UNKNOWN, userMessage, type World } from './world.ts';

const CODES = ['agent_not_published', 'forbidden', 'idempotency_conflict', 'internal_error', 'invalid_json'].concat([
  'invalid_request',
  'not_found',
  'rate_limited',
  'readiness_blocked',
  'service_inactive',
  'unauthenticated',
]);

/**
 * The error envelope, its codes and the order of checks (docs/spec/agent-threads-api.md#errors,
 * docs/spec/decisions.md#errors).
 */
export function describeErrors(world: World): void {
  const threads = () => `/agents/${world.agentId}/threads`;
  /** Agents are remembered for a moment. */
  const becomes = (path: string, code: string, client = world.client) =>
    eventually(async () => (await client.get(path)).code === code, { what: `${path} is ${code}` });

  describe('errors', () => {
    test('the enum of codes is closed: the document has these and no others', () => {
      const schema = JSON.stringify(world.client.document.components.schemas['ErrorEnvelope']);
      const { properties } = JSON.parse(schema) as {
        properties: { error: { properties: { code: { enum: string[] } } } };
      };
      expect(properties.error.properties.code.enum.toSorted()).toEqual(CODES.toSorted());
    });

    test.each(['{', '{"userId":"u",}', '{"userId":"u"}{}', '', 'undefined', "{'userId':'u'}"])(
      'invalid_json 400: %j',
      async (body) => {
        const reply = await world.client.post(threads(), undefined, {
          body,
          headers: { 'content-type': 'application/json' },
        });
        expect(refusal(reply)).toEqual([400, 'invalid_json']);
      },
    );

    test('invalid_json 400: not UTF-8', async () => {
      const body = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from([0xff]), Buffer.from('"}')]);
      const reply = await world.client.post(threads(), undefined, {
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(refusal(reply)).toEqual([400, 'invalid_json']);
    });

    test('invalid_request 400: request shape or query value', async () => {
      expect(refusal(await world.client.post(threads(), []))).toEqual([400, 'invalid_request']);
      const { id } = await world.newThread();
      expect(refusal(await world.client.get(`/threads/${id}/events?limit=x`))).toEqual([400, 'invalid_request']);
    });

    test.each([
      ['none', null],
      ['unknown', `spool_pat_${'A'.repeat(48)}`],
      ['a legacy account token', 'sk-live-0123456789abcdef'],
    ])('unauthenticated 401 with WWW-Authenticate: Bearer: %s', async (_, token) => {
      const reply = await world.client.get(`/threads/${UNKNOWN}`, { token });
      expect([...refusal(reply), reply.headers.get('www-authenticate')]).toEqual([401, 'unauthenticated', 'Bearer']);
    });

    test('forbidden 403: the caller cannot consume this Agent', async () => {
      const stranger = world.as((await world.newPerson({ member: false })).token);
      for (const reply of [await stranger.get(`/agents/${world.agentId}`), await world.create({ client: stranger })]) {
        expect(refusal(reply)).toEqual([403, 'forbidden']);
      }
    });

    test('not_found 404: not found for this caller', async () => {
      for (const path of [
        `/threads/${UNKNOWN}`,
        `/agents/${UNKNOWN}`,
        `/files/${UNKNOWN}`,
        `/threads/${UNKNOWN}/events/stream`,
      ]) {
        expect(refusal(await world.client.get(path))).toEqual([404, 'not_found']);
      }
    });

    test('readiness_blocked 409: known before the Run is queued, so no Run is made', async () => {
      const agentId = await world.newAgent({ harness: { name: 'missing-harness' } });
      const { id } = await world.newThread({ agentId });
      const before = await world.rowCounts();
      for (const reply of [await world.create({ agentId, text: 'hi' }), await world.send(id, userMessage('hi'))]) {
        expect(refusal(reply)).toEqual([409, 'readiness_blocked']);
        expect(reply.json.error.message).toBe('The Agent cannot run now: its harness is missing.');
      }
      expect(await world.rowCounts()).toEqual(before);
      expect(await world.log(id)).toEqual([]);
      expect((await world.client.get(`/threads/${id}/runs`)).json.runs).toEqual([]);
    });

    describe('the state of the Agent, on its routes and on those of its Threads and files', () => {
      const states = [
        ['agent_not_published', 'published = false', 409],
        ['service_inactive', 'api_enabled = false', 409],
        ['service_inactive', 'live_version = null', 409],
        ['not_found', 'deleted_at = now()', 404],
      ] as const;
      const prepared = new Map<string, Awaited<ReturnType<typeof prepare>>>();
      const prepare = async (columns: string) => {
        const agentId = await world.newAgent();
        const { thread, run } = await world.endedThread({ agentId });
        const { file } = (await world.attach(thread.id, 'a', 'a')).json;
        const draft = await world.draft('d', 'd', { agentId });
        await world.changeAgent(agentId, columns);
        return { agentId, threadId: thread.id, runId: run.id, fileId: file.id, draftId: draft.id };
      };
      beforeAll(async () => {
        for (const [, columns] of states) prepared.set(columns, await prepare(columns));
        await Promise.all(states.map(([code, columns]) => becomes(`/agents/${prepared.get(columns)!.agentId}`, code)));
      });

      test.each(states)('%s: %s', async (code, columns, status) => {
        const { agentId, threadId, runId, fileId, draftId } = prepared.get(columns)!;
        const { client } = world;
        const reads = ['', '/events', '/events/stream', '/runs', `/runs/${runId}`, '/files'];
        const replies = [
          await world.create({ agentId }),
          await client.get(`/agents/${agentId}/threads`),
          await world.upload('f', 'f', { agentId }),
          ...(await Promise.all(reads.map((path) => client.get(`/threads/${threadId}${path}`)))),
          await world.send(threadId, userMessage('hi')),
          await world.attach(threadId, 'b', 'b'),
          await client.post(`/threads/${threadId}/archive`),
          await client.get(`/files/${fileId}`),
          await client.get(`/files/${fileId}/content`),
          await client.get(`/files/${draftId}`),
        ];
        for (const reply of replies) expect(refusal(reply)).toEqual([status, code]);
      });

      test.each(states)('%s: %s, and the owner deletes the Thread', async (_, columns, status) => {
        const { threadId, fileId } = prepared.get(columns)!;
        const { client } = world;
        // Callers get 404 for Threads of a deleted Agent.
        const expected = status === 404 ? [404, 'not_found'] : [200, undefined];
        expect(refusal(await client.delete(`/threads/${threadId}`))).toEqual(expected);
        for (const path of [`/threads/${threadId}`, `/files/${fileId}`]) {
          expect(refusal(await client.get(path))).toEqual([404, 'not_found']);
        }
      });

      test('a caller that may not use the Agent is told 403, whatever its state', async () => {
        const stranger = world.as((await world.newPerson({ member: false })).token);
        for (const columns of ['published = false', 'api_enabled = false', 'live_version = null']) {
          const agentId = await world.newAgent();
          await world.changeAgent(agentId, columns);
          expect(refusal(await world.create({ agentId, client: stranger }))).toEqual([403, 'forbidden']);
        }
      });

      test('an Agent that is not published yields agent_not_published', async () => {
        const agentId = await world.newAgent();
        await world.changeAgent(agentId, 'published = false');
        expect(refusal(await world.create({ agentId }))).toEqual([409, 'agent_not_published']);
      });
    });

    describe('unknown paths, wrong methods and unparsable URLs have the envelope too', () => {
      test.each([
        ['GET', '/nope'],
        ['GET', '/agents'],
        ['GET', '/threads/%zz'],
        ['GET', '/threads/%00'],
        ['GET', '/threads/not-a-ulid'],
      ] as const)('%s %s', async (method, path) => {
        const reply = await world.client.call(method, path);
        expect([400, 404]).toContain(reply.status);
        expect(reply.code).toBe(reply.status === 404 ? 'not_found' : 'invalid_request');
      });

      test.each([
        ['PUT', `/threads/${UNKNOWN}`, 'HEAD, GET, DELETE, PATCH'],
        ['PATCH', `/threads/${UNKNOWN}/events`, 'HEAD, GET, POST'],
        ['DELETE', `/threads/${UNKNOWN}/events`, 'HEAD, GET, POST'],
        ['POST', `/files/${UNKNOWN}/content`, 'HEAD, GET'],
        ['GET', `/threads/${UNKNOWN}/archive`, 'POST'],
        ['DELETE', '/openapi.json', 'HEAD, GET'],
      ] as const)('%s %s: 405 invalid_request, Allow: %s', async (method, path, allow) => {
        const reply = await world.client.call(method, path);
        expect([...refusal(reply), reply.headers.get('allow')?.split(', ').toSorted()]).toEqual([
          405,
          'invalid_request',
          allow.split(', ').toSorted(),
        ]);
      });

      test('two Host headers: 400 invalid_request', async () => {
        const answer = await sendRaw(
          world.client,
          `GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`,
        );
        expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*\{"error":\{"code":"invalid_request"/);
      });

      test('what is not HTTP at all', async () => {
        expect(await sendRaw(world.client, 'NONSENSE\r\n\r\n')).toMatch(
          /^HTTP\/1\.1 400 [^]*\{"error":\{"code":"invalid_request"/,
        );
      });
    });

    describe('413 and 415', () => {
      test('body over the limit: 413 invalid_request, known before it is read', async () => {
        const head = (more: string) =>
          `POST /api/v1${threads()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.owner.token}\r\n` +
          `Content-Type: application/json\r\n${more}\r\n\r\n`;
        const announced = await sendRaw(world.client, head(`Content-Length: ${8 * 1024 * 1024 + 1}`));
        expect(announced).toMatch(/^HTTP\/1\.1 413 [^]*\{"error":\{"code":"invalid_request"/);
      });

      test.each([
        'text/plain',
        'application/xml',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
      ])('wrong content type %s: 415 invalid_request', async (type) => {
        const reply = await world.client.post(threads(), undefined, { body: '{}', headers: { 'content-type': type } });
        expect(refusal(reply)).toEqual([415, 'invalid_request']);
      });
    });

    test('a compressed body: 415 invalid_request with Accept-Encoding: identity, uploads too', async () => {
      for (const [path, type] of [
        [threads(), 'application/json'],
        [`/agents/${world.agentId}/files`, 'multipart/form-data; boundary=x'],
      ] as const) {
        const headers = { 'content-type': type, 'content-encoding': 'gzip' };
        const reply = await world.client.post(path, undefined, { body: 'x', headers });
        expect([...refusal(reply), reply.headers.get('accept-encoding')]).toEqual([415, 'invalid_request', 'identity']);
      }
    });

    test('an operation without a body takes any Content-Type, or none, with an empty body', async () => {
      const { id } = await world.newThread();
      const types = ['application/json', 'text/plain', 'multipart/form-data'];
      for (const headers of [{}, ...types.map((type) => ({ 'content-type': type }))]) {
        expect((await world.client.post(`/threads/${id}/archive`, undefined, { headers })).status).toBe(200);
      }
    });

    describe('the order: token → rate limit → path and query → body → access → idempotency → operation', () => {
      const headers = { 'content-type': 'application/json' };

      test('token before path', async () => {
        expect(refusal(await world.client.get('/threads/x', { token: null }))).toEqual([401, 'unauthenticated']);
      });
      test('path and query before body', async () => {
        const reply = await world.client.post('/threads/x/events', undefined, { body: '{', headers });
        expect(refusal(reply)).toEqual([400, 'invalid_request']);
      });
      test('body before access', async () => {
        const stranger = world.as((await world.newPerson({ member: false })).token);
        const broken = await stranger.post(threads(), undefined, { body: '{', headers });
        expect(refusal(broken)).toEqual([400, 'invalid_json']);
        expect(refusal(await stranger.post(threads(), {}))).toEqual([400, 'invalid_request']);
        expect(refusal(await world.client.post(`/threads/${UNKNOWN}/events`, {}))).toEqual([400, 'invalid_request']);
      });
      test('access before the operation', async () => {
        const { thread } = await world.waitingThread();
        const stranger = world.as((await world.newPerson()).token);
        const reply = await stranger.post(`/threads/${thread.id}/events`, { events: [userMessage('busy')] });
        expect(refusal(reply)).toEqual([404, 'not_found']);
      });
    });

    test('internal_error 503 with Retry-After: the database is away; and it comes back', async () => {
      const proxy = await faultProxy(Number(new URL(world.databaseUrl).port || 5432));
      const { api, client } = await world.startApi({ DATABASE_URL: proxy.through(world.databaseUrl) });
      try {
        const { id } = await world.newThread();
        expect((await client.get(`/threads/${id}`)).status).toBe(200);
        proxy.cut();
        const requests = [client.get(`/threads/${id}`), client.post(threads(), { userId: 'u', input: message('a') })];
        for (const reply of await Promise.all(requests)) {
          expect(refusal(reply)).toEqual([503, 'internal_error']);
          expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
        }
        proxy.resume();
        await eventually(async () => (await client.get(`/threads/${id}`)).status === 200, {
          what: 'it is back',
          timeoutMs: 10_000,
        });
      } finally {
        await api.process.kill('SIGKILL');
        await proxy.close();
      }
    });
  });
}

/** What a client that is not fetch sends, as it stands; answers all that comes back. */
function sendRaw({ baseUrl }: Client, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl);
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(request));
    socket.setEncoding('utf8');
    socket.on('data', (data: string) => {
      answer += data;
      if (answer.includes('"error"')) socket.end();
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}
