import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { eventually } from '#testing';
import type { Call, Client, Reply } from './client.ts';
import type { DescribedOperation, Method } from './openapi-check.ts';
import { decide, message, UNKNOWN, userMessage, type World } from './world.ts';

interface Route {
  method: Method;
  template: string;
  operation: DescribedOperation;
}

/** The ids that a path is filled with. */
type Ids = Record<'agentId' | 'threadId' | 'runId' | 'fileId', string>;

/** I11: every route of the OpenAPI document, with every kind of token that may not. */
export function describeSweep(world: World): void {
  describe('I11: every route of the document', () => {
    let mine: Ids;
    let draftId: string;
    const nothing: Ids = { agentId: UNKNOWN, threadId: UNKNOWN, runId: UNKNOWN, fileId: UNKNOWN };
    beforeAll(async () => {
      const { thread, run } = await world.endedThread();
      const { file } = (await world.attach(thread.id, 'a', 'a')).json;
      mine = { agentId: world.agentId, threadId: thread.id, runId: run.id, fileId: file.id };
      draftId = (await world.draft('d')).id;
    });

    const sweep = async (client: Client, routes: Route[], ids: Ids, call?: Call): Promise<Map<string, Reply>> => {
      const replies = new Map<string, Reply>();
      for (const { method, template, operation } of routes) {
        const path = template.replaceAll(/\{(\w+)\}/g, (_, name: keyof Ids) => ids[name]);
        const reply = await client.call(method, path, { ...bodyOf(template, operation), ...call });
        replies.set(`${method} ${template}`, reply);
      }
      return replies;
    };
    const expectAll = (replies: Map<string, Reply>, status: number, code: string): void => {
      expect(replies.size).toBeGreaterThan(0);
      for (const [route, reply] of replies) {
        // A HEAD has no body to tell the code in.
        const told = route.startsWith('HEAD') ? code : reply.code;
        expect([route, reply.status, told]).toEqual([route, status, code]);
      }
    };
    const expectSame = (some: Map<string, Reply>, others: Map<string, Reply>): void => {
      for (const [route, reply] of some) expect([route, shown(reply)]).toEqual([route, shown(others.get(route)!)]);
    };
    const all = () => routesOf(world).filter(({ operation }) => operation.security?.length !== 0);
    const ofAgents = () => all().filter(({ template }) => template.startsWith('/agents/'));
    /** The operations that name a resource. A list over all Agents refuses nobody. */
    const ofSomething = () => all().filter(({ template }) => template.includes('{'));
    const ofThreads = () => ofSomething().filter(({ template }) => !template.startsWith('/agents/'));

    test('has every route of the specification', () => {
      expect(all().map(({ method, template }) => `${method} ${template}`)).toEqual(expect.arrayContaining(ROUTES));
    });

    describe('401, byte for byte the same on all, for what is no valid token', () => {
      const tokens: [string, () => Promise<Call>][] = [
        ['none', async () => ({ token: null })],
        ['an empty one', async () => ({ token: '' })],
        ['Basic', async () => ({ token: null, headers: { authorization: 'Basic dTpw' } })],
        ['the bare token', async () => ({ token: null, headers: { authorization: world.owner.token } })],
        ['a legacy form, sk-…', async () => ({ token: `sk-live-${randomBytes(24).toString('hex')}` })],
        ['a bare ULID', async () => ({ token: world.owner.tokenId })],
        ['one that was never made', async () => ({ token: `spool_pat_${randomBytes(36).toString('base64url')}` })],
        ['a malformed one', async () => ({ token: world.owner.token.slice(0, -1) })],
        ['one letter changed', async () => ({ token: changeLetter(world.owner.token) })],
        ['the mark of another kind', async () => ({ token: world.owner.token.replace('_pat_', '_svc_') })],
        [
          'expired',
          async () => ({ token: (await world.mintFor(world.owner.personId, new Date(Date.now() - 1_000))).token }),
        ],
        [
          'revoked',
          async () => {
            const { token, id } = await world.mintFor(world.owner.personId);
            await world.access.revokeToken(id);
            return { token };
          },
        ],
      ];

      test.each(tokens)('%s', async (_, make) => {
        const call = await make();
        const before = await world.rowCounts();
        const [yours, none] = [
          await sweep(world.client, all(), mine, call),
          await sweep(world.client, all(), nothing, call),
        ];
        expectAll(yours, 401, 'unauthenticated');
        expectSame(yours, none);
        const bodies = [...yours].filter(([route]) => !route.startsWith('HEAD')).map(([, { text }]) => text);
        expect(new Set(bodies).size).toBe(1);
        expect(await world.rowCounts()).toEqual(before);
      });

      test('a token that is revoked after use is rejected within 5 s', async () => {
        const { token, id } = await world.mintFor(world.owner.personId);
        const client = world.as(token);
        expect((await client.get(`/threads/${mine.threadId}`)).status).toBe(200);
        await world.access.revokeToken(id);
        const revokedAt = performance.now();
        for (let status = 200; status !== 401;) {
          const sentAt = performance.now();
          ({ status } = await client.get(`/threads/${mine.threadId}`));
          // Uses the time of sending, so that a pause of the machine cannot fail this.
          if (sentAt - revokedAt >= 5_000) expect(status).toBe(401);
          await setTimeout(20);
        }
        expectAll(await sweep(client, all(), mine), 401, 'unauthenticated');
      });
    });

    describe('404, the same as for what is not there, for what is another’s', () => {
      const strangers: [string, () => Promise<string>][] = [
        ['another person of the organization', async () => (await world.newPerson()).token],
        [
          'a person of another organization',
          async () => {
            const organizationId = await world.access.createOrganization('Other');
            return (await world.newPerson({ organizationId })).token;
          },
        ],
        ['a person of none', async () => (await world.newPerson({ member: false })).token],
        ['a service token of this agent', async () => (await world.mintService([world.agentId])).token],
        ['a service token of another agent', async () => (await world.mintService([await world.newAgent()])).token],
        ['an operator token', async () => (await world.access.mintToken({ kind: 'operator', name: 'op' })).token],
      ];

      test.each(strangers)('%s: Threads, Runs and files', async (_, make) => {
        const client = world.as(await make());
        const before = await world.rowCounts();
        const theirs = await sweep(client, ofThreads(), mine);
        expectAll(theirs, 404, 'not_found');
        expectSame(theirs, await sweep(client, ofThreads(), nothing));
        const drafts = await sweep(
          client,
          ofThreads().filter(({ template }) => template.startsWith('/files/')),
          { ...mine, fileId: draftId },
        );
        expectSame(
          drafts,
          await sweep(
            client,
            ofThreads().filter(({ template }) => template.startsWith('/files/')),
            nothing,
          ),
        );
        expect(await world.rowCounts()).toEqual(before);
      });

      test('a Run or file of another’s Thread, asked for under one’s own: as one that is not there', async () => {
        const client = world.as((await world.newPerson()).token);
        const { id: threadId } = await world.newThread({ client });
        const nested = ofThreads().filter(({ template }) => /\{threadId\}.*\{(runId|fileId)\}/.test(template));
        const theirs = await sweep(client, nested, { ...mine, threadId });
        expectAll(theirs, 404, 'not_found');
        expectSame(theirs, await sweep(client, nested, { ...nothing, threadId }));
      });

      test('another’s Run in an interrupt, request in a decision, file in a resource or a declaration', async () => {
        const client = world.as((await world.newPerson()).token);
        const { thread, run, asked } = await world.waitingThread({ client });
        const theirs = await world.waitingThread();
        const compare = async (path: string, body: (id: string) => object, id: string) => {
          const [there, nowhere] = [await client.post(path, body(id)), await client.post(path, body(UNKNOWN))];
          const [a, b] = [shown(there), shown(nowhere)];
          expect([a.status, a.text.replaceAll(id, UNKNOWN), a.headers]).toEqual([b.status, b.text, b.headers]);
          expect(a.status).toBeGreaterThanOrEqual(400);
        };
        const events = `/threads/${thread.id}/events`;
        await compare(events, (runId) => ({ events: [{ type: 'user_interrupt', runId }] }), theirs.run.id);
        await compare(events, (id) => ({ events: [decide(id)] }), theirs.asked.content);
        await client.post(events, { events: [decide(asked.content)] });
        await world.ended(thread.id, client);
        const resources = (id: string) => [{ type: 'file', file_id: id }];
        for (const fileId of [mine.fileId, draftId]) {
          await compare(events, (id) => ({ events: [userMessage('a', { resources: resources(id) })] }), fileId);
          await compare(
            `/agents/${world.agentId}/threads`,
            (id) => ({ userId: 'u', resources: resources(id) }),
            fileId,
          );
          await compare(`/threads/${thread.id}/files`, (id) => ({ fileId: id }), fileId);
        }
        expect(run.status).toBe('waiting_input');
        expect((await world.client.get(`/threads/${theirs.thread.id}`)).json.run).toEqual(theirs.run);
      });
    });

    describe('403, the same on all routes of an Agent, for a token that may not use it', () => {
      const notAllowed: [string, () => Promise<string>, { access?: 'invited' }][] = [
        [
          'a person of another organization',
          async () => {
            const organizationId = await world.access.createOrganization('Other');
            return (await world.newPerson({ organizationId })).token;
          },
          {},
        ],
        ['a person of none', async () => (await world.newPerson({ member: false })).token, {}],
        [
          'a service token that does not list it',
          async () => (await world.mintService([await world.newAgent()])).token,
          {},
        ],
        [
          'a person not invited to an invited agent',
          async () => (await world.newPerson()).token,
          { access: 'invited' },
        ],
        ['an operator token', async () => (await world.access.mintToken({ kind: 'operator', name: 'op' })).token, {}],
      ];

      test.each(notAllowed)('%s; an unknown one is 404', async (_, make, agent) => {
        const client = world.as(await make());
        const agentId = await world.newAgent({}, agent);
        const before = await world.rowCounts();
        expectAll(await sweep(client, ofAgents(), { ...mine, agentId }), 403, 'forbidden');
        expectAll(await sweep(client, ofAgents(), nothing), 404, 'not_found');
        expect(await world.rowCounts()).toEqual(before);
      });

      test('the owner and those named may use an invited agent; a service token that lists it too', async () => {
        const agentId = await world.newAgent({}, { access: 'invited' });
        const guest = await world.newPerson();
        await world.pool.query('insert into agent_people (agent_id, person_id) values ($1, $2)', [
          agentId,
          guest.personId,
        ]);
        const service = await world.mintService([agentId]);
        for (const token of [world.owner.token, guest.token, service.token]) {
          expect((await world.create({ agentId, client: world.as(token) })).status).toBe(201);
        }
      });

      test('one’s own Thread, once one may no longer use its Agent: 403 on all its routes', async () => {
        const person = await world.newPerson();
        const client = world.as(person.token);
        const { thread, run } = await world.endedThread({ client });
        const { file } = (await world.attach(thread.id, 'a', 'a', client)).json;
        await world.pool.query('delete from memberships where person_id = $1', [person.personId]);
        const refused = async () => (await client.get(`/threads/${thread.id}`)).status === 403;
        await eventually(refused, { what: 'access is withdrawn' });
        const ids = { ...mine, threadId: thread.id, runId: run.id, fileId: file.id };
        expectAll(await sweep(client, ofSomething(), ids), 403, 'forbidden');
        expect((await client.get('/threads')).json).toEqual({ threads: [], nextCursor: null });
      });
    });

    test('a service token sees what it created, and nobody else does', async () => {
      const client = world.as((await world.mintService([world.agentId])).token);
      const { thread, run } = await world.endedThread({ client });
      expect((await client.get(`/threads/${thread.id}/runs/${run.id}`)).status).toBe(200);
      const ids = { ...nothing, threadId: thread.id, runId: run.id };
      const sister = world.as((await world.mintService([world.agentId])).token);
      for (const other of [world.client, sister]) expectAll(await sweep(other, ofThreads(), ids), 404, 'not_found');
    });
  });
}

/** The routes of docs/spec/decisions.md#routes, but for the document itself. */
const ROUTES = [
  'POST /agents/{agentId}/threads',
  'GET /agents/{agentId}/threads',
  'GET /agents/{agentId}',
  'POST /agents/{agentId}/files',
  'GET /threads',
  'GET /threads/{threadId}',
  'PATCH /threads/{threadId}',
  'DELETE /threads/{threadId}',
  'POST /threads/{threadId}/archive',
  'POST /threads/{threadId}/unarchive',
  'GET /threads/{threadId}/events',
  'POST /threads/{threadId}/events',
  'GET /threads/{threadId}/events/stream',
  'GET /threads/{threadId}/runs',
  'GET /threads/{threadId}/runs/{runId}',
  'POST /threads/{threadId}/runs/{runId}/retry',
  'POST /threads/{threadId}/files',
  'GET /threads/{threadId}/files',
  'DELETE /threads/{threadId}/files/{fileId}',
  'GET /files/{fileId}',
  'DELETE /files/{fileId}',
  'GET /files/{fileId}/content',
  'HEAD /files/{fileId}/content',
];

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'];

export function routesOf({ client }: World): Route[] {
  return Object.entries(client.document.paths).flatMap(([template, item]) =>
    Object.entries(item)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]) => ({ method: method.toUpperCase() as Method, template, operation })),
  );
}

/** A body that is right, so that the answer is about the caller. */
function bodyOf(template: string, { requestBody }: DescribedOperation): Call {
  if (requestBody === undefined) return {};
  if (requestBody.content['multipart/form-data'] !== undefined) {
    const body = new FormData();
    body.append('file', new File(['bytes of a stranger'], 'f.txt'));
    return { body };
  }
  if (template === '/threads/{threadId}') return { json: { title: 'by a stranger' } };
  if (template.endsWith('/events')) return { json: { events: [userMessage('from a stranger')] } };
  if (template.endsWith('/files')) return { json: { name: 'a', contentType: 'text/plain', contentBase64: 'YQ==' } };
  return { json: { userId: 'u', input: message('from a stranger') } };
}

/** Whatever a caller can tell two answers apart by, but for what differs between any two requests. */
function shown({ status, text, headers }: Reply): { status: number; text: string; headers: [string, string][] } {
  const kept = [...headers].filter(([name]) => !/^(date|x-request-id|ratelimit.*)$/i.test(name));
  return { status, text, headers: kept };
}

function changeLetter(token: string): string {
  const at = token.length - 10;
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}
