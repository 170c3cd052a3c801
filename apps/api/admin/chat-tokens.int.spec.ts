import { newId } from '#platform';
import { eventually } from '#testing';
import type { Reply } from '../api-under-test.testing.ts';
import { originOf, signIn } from '../console/signed-in.testing.ts';
import { AdminUnderTest, type Answer } from './admin-under-test.testing.ts';

// Real: HTTP, PostgreSQL, the policy watch.

type ChatToken = Answer<'createChatToken'>;

let admin: AdminUnderTest;
let agentId: string;
beforeAll(async () => {
  const BROWSER_TOKEN_KEYS = `k:${'a'.repeat(43)}=`;
  admin = await AdminUnderTest.start({ BROWSER_TOKEN_KEYS, RATE_LIMIT_STORE: 'process' });
  agentId = admin.api.agentId;
});
afterAll(() => admin.stop());

const create = (of = agentId, token = admin.token): Promise<ChatToken> =>
  admin.do('createChatToken', { body: { agentId: of }, token });
const reasonOf = ({ status, headers }: Reply): string => `${status} ${headers.get('spool-error-reason')}`;
const ask = async ({ token }: ChatToken, of = agentId) => reasonOf(await admin.api.get(`/agents/${of}`, { token }));
const newThread = (token: string, userId: string, of = agentId): Promise<Reply> =>
  admin.api.post(`/agents/${of}/threads`, { token, body: { userId } });
const agentIdsOf = async (tokenId: string): Promise<string[]> =>
  (await admin.do('getToken', { params: { tokenId } })).token.agentIds;

/** Creates an Agent in a new organization. */
async function newTenant(): Promise<{ organizationId: string; agentId: string }> {
  const organizationId = await admin.api.access.createOrganization('Globex');
  return { organizationId, agentId: await admin.api.newAgent({ organizationId }) };
}

/** Signs in with a new operator token. */
async function newSession() {
  const signed = await signIn(admin.api, (await newOperator('Linus')).token);
  const send = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${originOf(admin.api)}${path}`, {
      method,
      headers: { ...signed.headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  return {
    chatToken: async () => (await (await send('POST', '/admin/v1/chat-tokens', { agentId })).json()) as ChatToken,
    signOut: async () => expect((await send('DELETE', '/console/session')).status).toBe(204),
  };
}
const newOperator = (name: string) => admin.api.access.mintToken({ kind: 'operator', name });

it('creates one service token for concurrent first uses, and leaves another one named chat alone', async () => {
  const { organizationId, agentId: first } = await newTenant();
  const other = await admin.api.newAgent({ organizationId });
  const wanted = { kind: 'service', organizationId, agentIds: [other], name: 'chat' } as const;
  const own = await admin.api.access.mintToken(wanted);
  let made: ChatToken[] = [];
  const entries = await admin.entriesOf(async () => {
    made = await Promise.all(Array.from({ length: 5 }, () => create(first)));
  });
  const [{ tokenId }] = made as [ChatToken];
  expect(new Set(made.map((each) => each.tokenId)).size).toBe(1);
  const { tokens } = await admin.do('listTokens', { query: { organizationId, name: 'chat' } });
  expect(tokens.map(({ id, kind, agentIds }) => [id, kind, agentIds])).toEqual([
    [tokenId, 'service', [first]],
    [own.id, 'service', [other]],
  ]);
  const count = (action: string) => entries.filter((entry) => entry.action === action).length;
  expect([entries.length, count('token.minted'), count('chat_token.created')]).toEqual([6, 1, 5]);
});

it('returns a token with which the operator uses only this Agent', async () => {
  const made = await create();
  const { organizationId } = admin.api;
  expect(made).toMatchObject({ userId: 'operator:Grace', agentId, organizationId });
  const claims = JSON.parse(Buffer.from(made.token.split('.')[1]!, 'base64url').toString()) as Record<string, number>;
  expect([claims['exp']! - claims['iat']!, Date.parse(made.expiresAt)]).toEqual([900, claims['exp']! * 1_000]);
  const created = await newThread(made.token, made.userId);
  expect([created.status, created.json.thread.userId]).toEqual([201, 'operator:Grace']);
  const archived = await admin.api.post(`/threads/${created.json.thread.id}/archive`, { token: made.token });
  expect(archived.status).toBe(200);
  expect(reasonOf(await newThread(made.token, 'ada'))).toBe('403 user_forbidden');
  expect(await ask(made, await admin.api.newAgent({ organizationId }))).toBe('403 agent_forbidden');
});

it('writes an audit entry with the Agent and without the token', async () => {
  let made!: ChatToken;
  await create();
  const [entry, ...more] = await admin.entriesOf(async () => (made = await create()));
  const { tokenId, userId, expiresAt, organizationId } = made;
  expect(entry).toMatchObject({ action: 'chat_token.created', target_id: agentId, organization_id: organizationId });
  expect([entry!.details, more]).toEqual([{ tokenId, userId, expiresAt }, []]);
});

it('adds another Agent to the service token, and returns when every process accepts it', async () => {
  const { organizationId, agentId: first } = await newTenant();
  const earlier = await create(first);
  // The process has now cached the service token without the second Agent.
  expect(await ask(earlier, first)).toBe('200 null');
  const second = await admin.api.newAgent({ organizationId });
  let made!: ChatToken;
  const actions = await admin.actionsOf(async () => (made = await create(second)));
  expect(actions).toEqual(['token.updated', 'chat_token.created']);
  expect([made.tokenId, await ask(made, second), await ask(earlier, first)]).toEqual([
    earlier.tokenId,
    '200 null',
    '200 null',
  ]);
});

it('returns to every request of an added Agent only when every process accepts the token', async () => {
  const { organizationId, agentId: first } = await newTenant();
  const earlier = await create(first);
  expect(await ask(earlier, first)).toBe('200 null');
  const second = await admin.api.newAgent({ organizationId });
  const asked = Array.from({ length: 4 }, async () => ask(await create(second), second));
  expect(await Promise.all(asked)).toEqual(asked.map(() => '200 null'));
});

it('removes the longest unused Agent from a full list', async () => {
  const { organizationId, agentId: used } = await newTenant();
  const { token, tokenId, userId } = await create(used);
  expect((await newThread(token, userId, used)).status).toBe(201);
  const unused = Array.from({ length: 99 }, () => newId());
  await admin.pool.query(
    `with added as (
       insert into agents (id, organization_id, name, kind) select id, $2, 'a', 'cattle' from unnest($1::text[]) id returning id
     )
     insert into token_agents (token_id, agent_id) select $3, id from added`,
    [unused, organizationId, tokenId],
  );
  const wanted = await admin.api.newAgent({ organizationId });
  const made = await create(wanted);
  expect(await agentIdsOf(tokenId)).toEqual([used, ...unused, wanted].filter((id) => id !== unused[0]).toSorted());
  expect([await ask(made, wanted), made.tokenId]).toEqual(['200 null', tokenId]);
  // The Agent that was added now has no Thread either.
  const next = await admin.api.newAgent({ organizationId });
  await create(next);
  const removed = unused.slice(0, 2);
  expect(await agentIdsOf(tokenId)).toEqual(
    [used, ...unused, wanted, next].filter((id) => !removed.includes(id)).toSorted(),
  );
});

it('replaces a revoked service token', async () => {
  const { agentId: of } = await newTenant();
  const { tokenId } = await create(of);
  await admin.do('revokeToken', { params: { tokenId } });
  let made!: ChatToken;
  const actions = await admin.actionsOf(async () => (made = await create(of)));
  expect(actions).toEqual(['token.minted', 'chat_token.created']);
  expect([made.tokenId === tokenId, await ask(made, of)]).toEqual([false, '200 null']);
});

it('shows which Threads chat tokens reach: not those of a user with the same name in an application', async () => {
  const { organizationId, agentId: of } = await newTenant();
  const made = await create(of);
  const { token: service } = await admin.api.access.mintToken({
    ...{ kind: 'service', organizationId, agentIds: [of], name: 'app' },
  });
  const reached = (await newThread(made.token, made.userId, of)).json.thread.id;
  const other = (await newThread(service, made.userId, of)).json.thread.id;
  const isOfChat = async (threadId: string) => (await admin.do('getThread', { params: { threadId } })).thread.ofChat;
  expect([await isOfChat(reached), await isOfChat(other)]).toEqual([true, false]);
  expect((await admin.api.get(`/threads/${other}`, { token: made.token })).status).toBe(404);
  // The next service token will reach none of the earlier Threads.
  await admin.do('revokeToken', { params: { tokenId: made.tokenId } });
  expect(await isOfChat(reached)).toBe(false);
});

it('gives operators with long names different users', async () => {
  const users = await Promise.all(
    ['a', 'b'].map(async (end) => {
      const { token } = await newOperator(`${'é'.repeat(254)}${end}`);
      const made = await create(agentId, token);
      expect((await newThread(made.token, made.userId)).status).toBe(201);
      return made.userId;
    }),
  );
  expect(new Set(users).size).toBe(2);
});

it.each([
  ['is not published', 'update agents set published = false where id = $1', 'conflict'],
  ['is switched off', 'update agents set api_enabled = false where id = $1', 'conflict'],
  ['has no live version', 'update agents set live_version = null where id = $1', 'conflict'],
  ['is deleted', 'update agents set deleted_at = now() where id = $1', 'not_found'],
])('refuses an Agent that %s', async (_, statement, code) => {
  const { agentId: of } = await newTenant();
  await admin.pool.query(statement, [of]);
  const before = await admin.rowCounts();
  expect((await admin.refused('createChatToken', { body: { agentId: of } }))[0]).toBe(code);
  expect(await admin.rowCounts()).toEqual(before);
});

it('names the setting that lacks keys', async () => {
  const without = await AdminUnderTest.start();
  const refused = await without.refused('createChatToken', { body: { agentId: without.api.agentId } });
  await without.stop();
  const message = 'This installation has no keys for chat tokens; set BROWSER_TOKEN_KEYS.';
  expect(refused).toEqual(['conflict', message]);
});

it('ends the token and its open streams when the operator signs out, and no other token', async () => {
  const [session, other] = [await newSession(), await newSession()];
  const [chat, others] = [await session.chatToken(), await other.chatToken()];
  const { json } = await newThread(chat.token, chat.userId);
  const url = `${admin.api.url}/threads/${json.thread.id}/events/stream`;
  const stream = await fetch(url, { headers: { authorization: `Bearer ${chat.token}` } });
  expect(stream.status).toBe(200);
  await session.signOut();
  const last = /^event: thread\.error\ndata: (.*)$/m.exec(await stream.text())?.[1];
  expect(JSON.parse(last ?? '{}')).toMatchObject({ error: { code: 'unauthenticated' } });
  expect([await ask(chat), await ask(others)]).toEqual(['401 token_invalid', '200 null']);
});

it('ends the token when the operator token that created it is revoked', async () => {
  const { id, token } = await newOperator('Ken');
  const chat = await create(agentId, token);
  expect(await ask(chat)).toBe('200 null');
  await admin.api.access.revokeToken(id);
  await eventually(async () => (await ask(chat)) === '401 token_invalid', { what: 'the token is refused' });
});
