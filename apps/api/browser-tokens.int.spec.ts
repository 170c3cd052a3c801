import { BrowserTokens, SignedTokens, type BrowserClaims } from '#access';
import { operations } from '#contract';
import { FileStore } from '#files';
import { newId, parseSigningKeys } from '#platform';
import { ROUTES, unknownIds, type Ids, type Route } from './access-matrix.testing.ts';
import { ApiUnderTest, type Call, type Reply } from './api-under-test.testing.ts';

const KEYS = `k2:${'b'.repeat(43)}=,k1:${'a'.repeat(43)}=`;
const ALL = ['read', 'send', 'decide', 'upload', 'manage'];

let api: ApiUnderTest;
/** The service token that creates the browser tokens, and its Agents. */
let parent: { id: string; token: string };
let agentId: string;
let otherAgentId: string;

beforeAll(async () => {
  api = await ApiUnderTest.start({
    settings: { BROWSER_TOKEN_KEYS: KEYS, RATE_LIMIT_STORE: 'process', DRAFTS_PER_BROWSER_USER: 2 },
  });
  agentId = api.agentId;
  otherAgentId = await api.newAgent();
  parent = await newParent();
});
afterAll(() => api.stop());

const newParent = (agentIds = [agentId, otherAgentId]) =>
  api.access.mintToken({ kind: 'service', organizationId: api.organizationId, agentIds, name: 'app' });

const mint = (body: object, token = parent.token) => api.post('/browser-tokens', { token, body });

/** Returns a browser token of the parent. */
async function tokenFor(rights: object): Promise<string> {
  const { status, json } = await mint({ userId: 'ada', verbs: ALL, ...rights });
  expect(status).toBe(201);
  return (json as unknown as { token: string }).token;
}

const reasonOf = ({ status, headers }: Reply): string => `${status} ${headers.get('spool-error-reason')}`;
const hi = { type: 'user.message', content: [{ type: 'text', text: 'hi' }] };

async function newThread(token: string, userId = 'ada', more: object = {}): Promise<string> {
  const reply = await api.post(`/agents/${agentId}/threads`, { token, body: { userId, input: hi, ...more } });
  expect(reply.status).toBe(201);
  return reply.json.thread.id;
}

function upload(token: string, key?: string): Promise<Reply> {
  const form = new FormData();
  form.append('file', new Blob(['hello']), 'a.txt');
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  return api.post(`/agents/${agentId}/files`, { token, form, headers });
}
const fileIdOf = ({ json }: Reply): string => (json as unknown as { file: { id: string } }).file.id;

/** Sends the request of a route. A stream ends after its headers. */
async function ask(route: Route, ids: Ids, { token, headers = {} }: Call): Promise<[number, string | null, string]> {
  const abort = new AbortController();
  const response = await fetch(`${api.url}${route.path(ids)}`, {
    method: route.method,
    signal: abort.signal,
    headers: {
      authorization: `Bearer ${token}`,
      ...(route.contentType === null ? {} : { 'content-type': route.contentType }),
      ...headers,
    },
    body: route.body,
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const text = isStream ? '' : await response.text();
  abort.abort();
  return [response.status, response.headers.get('spool-error-reason'), text];
}

describe('minting', () => {
  it('returns a token and its end, and stores nothing', async () => {
    const before = await api.rowCounts();
    const { status, json, headers } = await mint({ userId: 'ada', verbs: ['read'], expiresInSeconds: 60 });
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { token, expiresAt } = json as unknown as { token: string; expiresAt: string };
    expect(token).toMatch(/^spool_bt_/);
    const claims = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as {
      iat: number;
      exp: number;
    };
    expect([Date.parse(expiresAt), claims.exp - claims.iat]).toEqual([claims.exp * 1_000, 60]);
    expect(await api.rowCounts()).toEqual(before);
  });

  it.each<[string, object, string]>([
    ['no verb', { verbs: [] }, '400 invalid_field'],
    ['an unknown verb', { verbs: ['read', 'delete'] }, '400 invalid_field'],
    ['59 seconds', { expiresInSeconds: 59 }, '400 invalid_field'],
    ['3,601 seconds', { expiresInSeconds: 3_601 }, '400 invalid_field'],
    ['an origin with a path', { origins: ['https://a.example/'] }, '400 invalid_field'],
    ['the origin of no page', { origins: ['null'] }, '400 invalid_field'],
    ['the default port of https', { origins: ['https://a.example:443'] }, '400 invalid_field'],
    ['the default port of http', { origins: ['https://a.example', 'http://[::1]:80'] }, '400 invalid_field'],
    ['a holder', { holder: { token: newId() } }, '400 invalid_field'],
    ['an unknown Agent', { agentId: newId() }, '404 agent_not_found'],
    ['an unknown Thread', { threadId: newId() }, '404 thread_not_found'],
  ])('refuses %s', async (_, rights, reason) => {
    expect(reasonOf(await mint({ userId: 'ada', verbs: ['read'], ...rights }))).toBe(reason);
  });

  it('refuses an Agent that the service token does not list, and the Thread of another user', async () => {
    const unlisted = await api.newAgent();
    expect(reasonOf(await mint({ userId: 'ada', verbs: ['read'], agentId: unlisted }))).toBe('403 agent_forbidden');
    const threadId = await newThread(parent.token, 'bob');
    expect(reasonOf(await mint({ userId: 'ada', verbs: ['read'], threadId }))).toBe('404 thread_not_found');
    const elsewhere = { userId: 'bob', verbs: ['read'], threadId, agentId: otherAgentId };
    expect(reasonOf(await mint(elsewhere))).toBe('404 thread_not_found');
  });

  it('is for service tokens only', async () => {
    const body = { userId: 'ada', verbs: ['read'] };
    const { token: operator } = await api.access.mintToken({ kind: 'operator', name: 'o' });
    for (const token of [api.token, operator, await tokenFor({})]) {
      expect(reasonOf(await mint(body, token))).toBe('403 service_token_required');
    }
  });

  it('needs keys', async () => {
    const without = await ApiUnderTest.start();
    const { organizationId } = without;
    const wanted = { kind: 'service', organizationId, agentIds: [without.agentId], name: 'app' } as const;
    const { token } = await without.access.mintToken(wanted);
    const reply = await without.post('/browser-tokens', { token, body: { userId: 'ada', verbs: ['read'] } });
    await without.stop();
    expect(reasonOf(reply)).toBe('409 browser_tokens_off');
  });
});

describe('a browser token', () => {
  /** The Thread of Bob with a Run that has ended and a file, and a draft of Bob. */
  let bobs: Ids;
  let bobsDraft: string;

  beforeAll(async () => {
    const bob = await tokenFor({ userId: 'bob' });
    const threadId = await newThread(bob, 'bob');
    const { json } = await api.get(`/threads/${threadId}`, { token: bob });
    await api.completeRun(threadId, json.run.id);
    const body = { name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGVsbG8=' };
    const file = fileIdOf(await api.post(`/threads/${threadId}/files`, { token: bob, body }));
    bobs = { agentId, threadId, runId: json.run.id, fileId: file };
    bobsDraft = fileIdOf(await upload(bob));
  });

  it('reaches no Thread, file or draft of another user, and cannot tell that they exist', async () => {
    const before = await api.rowCounts();
    const token = await tokenFor({});
    const found: unknown[] = [];
    for (const route of ROUTES.filter(({ of }) => of === 'threads' || of === 'files')) {
      for (const ids of [bobs, { ...bobs, fileId: bobsDraft }]) {
        const there = await ask(route, ids, { token });
        const nowhere = await ask(route, unknownIds(), { token });
        if (JSON.stringify(there) !== JSON.stringify(nowhere) || there[0] !== 404)
          found.push([route.operation, there, nowhere]);
      }
    }
    expect(found).toEqual([]);
    expect(await api.rowCounts()).toEqual(before);
  });

  it('makes and lists nothing for another user', async () => {
    const token = await tokenFor({});
    const path = `/agents/${agentId}/threads`;
    const create = await api.post(path, { token, body: { userId: 'bob' } });
    const lists = await Promise.all([`${path}?userId=bob`, '/threads?userId=bob'].map((of) => api.get(of, { token })));
    expect([create, ...lists].map(reasonOf)).toEqual(Array(3).fill('403 user_forbidden'));
    const mine = await newThread(token);
    for (const list of [path, '/threads']) {
      const { json } = await api.get(list, { token });
      const threads = (json as unknown as { threads: { id: string; userId: string }[] }).threads;
      expect(threads.map(({ userId }) => userId)).not.toContain('bob');
      expect(threads.map(({ id }) => id)).toContain(mine);
    }
  });

  it('attaches no draft of another user, and its service token attaches any', async () => {
    const ada = await tokenFor({});
    const attach = async (token: string, userId: string) => {
      const resources = [{ type: 'file', file_id: bobsDraft }];
      return api.post(`/agents/${agentId}/threads`, { token, body: { userId, resources } });
    };
    expect(reasonOf(await attach(ada, 'ada'))).toBe('400 draft_not_found');
    const threadId = await newThread(ada);
    const attached = await api.post(`/threads/${threadId}/files`, { token: ada, body: { fileId: bobsDraft } });
    expect(reasonOf(attached)).toBe('400 draft_not_found');
    const own = fileIdOf(await upload(ada));
    const mine = await api.post(`/threads/${threadId}/files`, { token: ada, body: { fileId: own } });
    expect(mine.status).toBe(201);
    expect((await attach(parent.token, 'bob')).status).toBe(201);
  });

  it('deletes no file of another user if its draft is attached to that user’s Thread at the same time', async () => {
    const draft = fileIdOf(await upload(await tokenFor({ userId: 'fay' })));
    const deleting = jest.spyOn(FileStore.prototype, 'deleteDraft').mockImplementationOnce(async () => {
      const resources = [{ type: 'file', file_id: draft }];
      const body = { userId: 'bob', resources };
      expect((await api.post(`/agents/${agentId}/threads`, { token: parent.token, body })).status).toBe(201);
      return null;
    });
    const reply = await api.call('DELETE', `/files/${draft}`, { token: await tokenFor({ userId: 'fay' }) });
    expect([deleting.mock.calls.length, reasonOf(reply)]).toEqual([1, '404 file_not_found']);
    deleting.mockRestore();
    const kept = await api.get(`/files/${draft}`, { token: await tokenFor({ userId: 'bob' }) });
    expect(kept.status).toBe(200);
  });

  it('is refused by every route of an Agent, a Thread or a verb that it does not name', async () => {
    const threadId = await newThread(await tokenFor({}));
    const { json } = await api.get(`/threads/${threadId}`, { token: parent.token });
    const body = { name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGVsbG8=' };
    const fileId = fileIdOf(await api.post(`/threads/${threadId}/files`, { token: parent.token, body }));
    const ids = { agentId, threadId, runId: json.run.id, fileId };
    const elsewhere = await tokenFor({ agentId: otherAgentId });
    const other = await newThread(await tokenFor({}));
    const ofOther = await tokenFor({ threadId: other });
    const before = await api.rowCounts();
    const found: unknown[] = [];
    for (const route of ROUTES) {
      const { verb } = operations[route.operation];
      if (route.of === 'threads' || route.of === 'files') {
        for (const token of [elsewhere, ofOther]) {
          const answer = await ask(route, ids, { token });
          if (answer[0] !== 404) found.push([route.operation, answer]);
        }
      }
      if (route.of === 'agents') {
        const answer = await ask(route, ids, { token: elsewhere });
        if (answer[0] !== 403) found.push([route.operation, answer]);
      }
      if (verb === null) continue;
      const needed = verb === 'by_event' ? 'send' : verb;
      const verbs = ALL.filter((one) => one !== needed);
      const without = await tokenFor({ verbs });
      for (const some of [ids, unknownIds()]) {
        const answer = await ask(route, some, { token: without });
        // The verb of an event is known only after the body has been read. It is then checked first.
        if (answer[0] !== 403) found.push([route.operation, verbs, answer]);
      }
    }
    expect(found).toEqual([]);
    expect(await api.rowCounts()).toEqual(before);
  });

  it('for one Thread lists and creates none', async () => {
    const token = await tokenFor({ threadId: await newThread(await tokenFor({})) });
    const path = `/agents/${agentId}/threads`;
    const replies = [
      await api.post(path, { token, body: { userId: 'ada' } }),
      await api.get(path, { token }),
      await api.get('/threads', { token }),
    ];
    expect(replies.map(reasonOf)).toEqual(Array(3).fill('403 user_forbidden'));
  });

  it('needs the verb of each event of a batch', async () => {
    const threadId = await newThread(await tokenFor({}));
    const decision = { type: 'permission_decision', requestId: newId(), decision: 'allow_once' };
    const batch = { events: [{ type: 'user_interrupt' }, decision] };
    const send = (token: string) => api.post(`/threads/${threadId}/events`, { token, body: batch });
    expect(reasonOf(await send(await tokenFor({ verbs: ['read', 'send'] })))).toBe('403 verb_missing');
    expect(reasonOf(await send(await tokenFor({ verbs: ['send', 'decide'] })))).toBe('409 request_not_pending');
  });

  it('may be used by pages of its origins, and without an Origin', async () => {
    const token = await tokenFor({ origins: ['https://a.example', 'http://localhost:5173'] });
    const from = (origin?: string) =>
      api.get(`/agents/${agentId}`, { token, headers: origin === undefined ? {} : { origin } });
    for (const origin of ['https://a.example', 'http://localhost:5173', undefined]) {
      expect((await from(origin)).status).toBe(200);
    }
    for (const origin of ['http://a.example', 'https://a.example:444', 'https://b.example', 'null']) {
      expect(reasonOf(await from(origin))).toBe('403 origin_forbidden');
    }
  });

  it('replays its user’s idempotency keys after a renewal, and never those of another user', async () => {
    const create = async (token: string, userId: string) => {
      const headers = { 'idempotency-key': 'first' };
      return api.post(`/agents/${agentId}/threads`, { token, headers, body: { userId } });
    };
    const [first, renewed] = [await tokenFor({}), await tokenFor({ expiresInSeconds: 120 })];
    const made = await create(first, 'ada');
    const replay = await create(renewed, 'ada');
    const [bob, service] = [await create(await tokenFor({ userId: 'bob' }), 'bob'), await create(parent.token, 'ada')];
    const replayed = [made, replay, bob, service].map(({ headers }) => headers.get('idempotency-replayed'));
    expect(replayed).toEqual([null, 'true', null, null]);
    expect(replay.text).toBe(made.text);
    expect(new Set([made, bob, service].map(({ json }) => json.thread.id)).size).toBe(3);
    const uploads = [await upload(first, 'file'), await upload(renewed, 'file'), await upload(parent.token, 'file')];
    expect(new Set(uploads.map(fileIdOf)).size).toBe(2);
  });

  it('can fill the drafts of its user, and of no one else', async () => {
    const carl = await tokenFor({ userId: 'carl' });
    const uploads = [await upload(carl), await upload(await tokenFor({ userId: 'carl' })), await upload(carl)];
    expect(uploads.map(reasonOf)).toEqual(['201 null', '201 null', '429 too_many_drafts']);
    const others = [await upload(await tokenFor({ userId: 'dora' })), await upload(parent.token)];
    expect(others.map(reasonOf)).toEqual(['201 null', '201 null']);
    await api.call('DELETE', `/files/${fileIdOf(uploads[0]!)}`, { token: carl });
    expect(reasonOf(await upload(carl))).toBe('201 null');
  });

  it('has references for its user only', async () => {
    const [ada, bob] = [await tokenFor({}), await tokenFor({ userId: 'bob' })];
    const externalRef = newId();
    await newThread(bob, 'bob', { externalRef });
    const threadId = await newThread(ada, 'ada', { externalRef });
    const path = `/agents/${agentId}/threads`;
    const again = await api.post(path, { token: ada, body: { userId: 'ada', externalRef } });
    expect([reasonOf(again), again.headers.get('spool-thread-id')]).toEqual(['409 reference_taken', threadId]);
  });

  it('that is expired, tampered with or of an unknown key is 401, and only the first says so', async () => {
    const claims: BrowserClaims = {
      parentId: parent.id,
      userId: 'ada',
      agentId,
      threadId: null,
      verbs: ALL,
      origins: null,
    };
    const minted = await mint({ userId: 'ada', verbs: ALL, expiresInSeconds: 60 });
    const now = Date.parse((minted.json as unknown as { expiresAt: string }).expiresAt) - 60_000;
    const made = async (keys: string, { agoMs = 0, parentId = parent.id } = {}) =>
      (
        await new BrowserTokens(new SignedTokens(parseSigningKeys(keys), () => now - agoMs)).make(
          { ...claims, parentId },
          60,
        )
      ).token;
    const valid = await made(KEYS);
    const asked = async (token: string) => reasonOf(await api.get(`/agents/${agentId}`, { token }));
    expect(await asked(valid)).toBe('200 null');
    expect(await asked(await made(`k1:${'a'.repeat(43)}=`))).toBe('200 null');
    expect(await asked(await made(KEYS, { agoMs: 61_000 }))).toBe('401 token_expired');
    for (const token of [
      await made(`k1:${'c'.repeat(43)}=`),
      await made(`k3:${'b'.repeat(43)}=`),
      await made(KEYS, { parentId: newId() }),
      `${valid.slice(0, -10)}${'A'.repeat(10)}`,
      'spool_bt_a.b.c',
      'spool_bt_',
    ]) {
      expect([token, await asked(token)]).toEqual([token, '401 token_invalid']);
    }
  });
});

describe('an open stream', () => {
  /** Opens a stream of a new Thread, reads the first entry, lets something happen, and returns the reason of its end. */
  async function endOf(
    rights: object,
    happens: (of: { parentId: string; agentId: string }) => Promise<unknown>,
    query = '',
  ) {
    const own = await api.newAgent();
    const { id: parentId, token } = await newParent([own, agentId]);
    const minted = await mint({ userId: 'ada', verbs: ['read', 'send'], ...rights }, token);
    const browser = (minted.json as unknown as { token: string }).token;
    const { json } = await api.post(`/agents/${own}/threads`, { token: browser, body: { userId: 'ada', input: hi } });
    const headers = { authorization: `Bearer ${browser}` };
    const stream = await fetch(`${api.url}/threads/${json.thread.id}/events/stream${query}`, { headers });
    const text = stream.text();
    await happens({ parentId, agentId: own });
    return /^event: thread\.error\ndata: (.*)$/m.exec(await text)?.[1];
  }

  const SPENT = { code: 'unauthenticated', message: 'The browser token has expired.' };

  it.each<[string, (of: { parentId: string; agentId: string }) => Promise<unknown>, string]>([
    ['its service token is revoked', ({ parentId }) => api.access.revokeToken(parentId), 'unauthenticated'],
    [
      'its service token loses the Agent',
      ({ parentId, agentId: removed }) => api.access.updateToken(parentId, { removeAgentIds: [removed] }),
      'forbidden',
    ],
    [
      'its Agent is unpublished',
      ({ agentId: unpublished }) => api.pool.query('update agents set published = false where id = $1', [unpublished]),
      'agent_not_published',
    ],
  ])('ends when %s', async (_, happens, code) => {
    expect(JSON.parse((await endOf({}, happens)) ?? '{}')).toMatchObject({ error: { code } });
  });

  it.each([
    ['', { error: SPENT }],
    ['?extended=true', { error: { ...SPENT, reason: 'token_expired' } }],
  ])('%s ends with its browser token, and says so', async (query, error) => {
    const verify = jest.spyOn(BrowserTokens.prototype, 'verify');
    const end = await endOf({}, async () => void verify.mockResolvedValue('expired'), query);
    verify.mockRestore();
    expect(JSON.parse(end ?? '{}')).toEqual(error);
  });
});
