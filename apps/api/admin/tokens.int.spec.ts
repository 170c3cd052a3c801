import { createHash } from 'node:crypto';
import { eventually } from '#testing';
import { AdminUnderTest, type Given } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
let personId: string;
let organizationId: string;
let agentId: string;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  ({ personId, organizationId, agentId } = admin.api);
});
afterAll(() => admin.stop());

const sha256 = (secret: string): string => createHash('sha256').update(secret).digest('hex');
const mint = (body: Given<'mintToken'>['body'] & object) => admin.do('mintToken', { body });
const forPerson = () => mint({ kind: 'person', personId, name: 'app' });
const forService = (agentIds: string[]) => mint({ kind: 'service', organizationId, agentIds, name: 'bot' });
const update = (tokenId: string, body: Given<'updateToken'>['body'] & object) =>
  admin.do('updateToken', { params: { tokenId }, body });
const rotate = (tokenId: string, graceSeconds = 0) =>
  admin.do('rotateToken', { params: { tokenId }, body: { graceSeconds } });
const identify = async (secret: string): Promise<string | null> => {
  const { status, json } = await admin.send('identifyToken', { body: { sha256: sha256(secret) } });
  return status === 200 ? (json as { token: { id: string } }).token.id : null;
};

/** Returns whether the API accepts the secret. Results are cached for a short time. */
const works = async (token: string): Promise<boolean> =>
  (await admin.api.get(`/agents/${agentId}`, { token })).status === 200;
const stops = (token: string) => eventually(async () => !(await works(token)), { what: 'the secret is refused' });

test('a token of each kind is created, read, listed and accepted', async () => {
  const person = await forPerson();
  const service = await forService([agentId]);
  const operator = await mint({ kind: 'operator', name: 'ops', expiresAt: '2099-01-01T00:00:00Z' });
  const common = { status: 'active', personId: null, organizationId: null, agentIds: [], allowAttribution: false };
  expect(person.token).toMatchObject({ ...common, kind: 'person', personId, lastUsedAt: null, expiresAt: null });
  expect(service.token).toMatchObject({ ...common, kind: 'service', organizationId, agentIds: [agentId] });
  expect(operator.token).toMatchObject({ ...common, kind: 'operator', expiresAt: '2099-01-01T00:00:00.000Z' });
  expect(await Promise.all([person, service].map(({ secret }) => works(secret)))).toEqual([true, true]);
  await admin.do('getQueue', { token: operator.secret });
  for (const { token, secret } of [person, service, operator]) {
    const params = { tokenId: token.id };
    const used = await eventually(
      async () => {
        const read = (await admin.do('getToken', { params })).token;
        return read.lastUsedAt !== null && read;
      },
      { what: 'the use of the token is recorded' },
    );
    expect({ ...used, lastUsedAt: null }).toEqual(token);
    expect(await identify(secret)).toBe(token.id);
  }
});

test('lists tokens by each filter, in pages', async () => {
  const service = await forService([agentId]);
  const other = await admin.api.newAgent();
  const revoked = await forService([other]);
  await admin.do('revokeToken', { params: { tokenId: revoked.token.id } });
  const old = { kind: 'person', personId, name: 'old' } as const;
  const expired = await mint(old);
  await admin.do('updateToken', {
    params: { tokenId: expired.token.id },
    body: { expiresAt: '1999-12-31T23:59:59Z' },
  });
  expect(await admin.refused('mintToken', { body: { ...old, expiresAt: '1999-12-31T23:59:59Z' } })).toEqual([
    'invalid_request',
    'The expiry (expiresAt) is in the past; use a time in the future.',
  ]);
  const ids = async (query: Given<'listTokens'>['query']) =>
    (await admin.do('listTokens', { query: query! })).tokens.map(({ id }) => id);
  expect(await ids({ status: 'expired' })).toEqual([expired.token.id]);
  expect(await ids({ agentId: other })).toEqual([revoked.token.id]);
  expect(await ids({ agentId: other, status: 'active' })).toEqual([]);
  expect(await ids({ organizationId, kind: 'service', limit: 2 })).toEqual([revoked.token.id, service.token.id]);
  expect((await ids({ personId }))[0]).toBe(expired.token.id);
  const all = await ids({});
  const pages: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query: Given<'listTokens'>['query'] = { limit: 3, ...(cursor && { cursor }) };
    const page: { tokens: { id: string }[]; nextCursor: string | null } = await admin.do('listTokens', { query });
    pages.push(...page.tokens.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  expect(pages).toEqual(all);
});

describe('rotating a token', () => {
  test('keeps its id and Threads, and its old secret works until the grace period ends', async () => {
    const { token, secret } = await forService([agentId]);
    const threadId = await admin.api.newThread({ token: secret });
    const rotated = await rotate(token.id, 3_600);
    expect(rotated.token).toMatchObject({
      id: token.id,
      status: 'active',
      createdAt: token.createdAt,
      agentIds: [agentId],
    });
    const graceMs = Date.parse(rotated.token.oldSecretUntil!) - Date.parse(rotated.token.rotatedAt!);
    expect(graceMs).toBe(3_600_000);
    for (const each of [secret, rotated.secret]) {
      expect((await admin.api.get(`/threads/${threadId}`, { token: each })).status).toBe(200);
      expect(await identify(each)).toBe(token.id);
    }
    await admin.pool.query(`update tokens set old_hash_until = now() - interval '1 ms' where id = $1`, [token.id]);
    await stops(secret);
    expect(await works(rotated.secret)).toBe(true);
    expect((await admin.do('getToken', { params: { tokenId: token.id } })).token.oldSecretUntil).toBeNull();
  });

  test('without grace ends the old secret', async () => {
    const { token, secret } = await forPerson();
    // The old secret is in no cache, because it was never used.
    const rotated = await rotate(token.id);
    expect([await works(secret), await works(rotated.secret)]).toEqual([false, true]);
    expect(rotated.token.oldSecretUntil).toBeNull();
  });

  test('twice keeps only the previous secret in its grace period', async () => {
    const first = await forPerson();
    const second = await rotate(first.token.id, 3_600);
    const third = await rotate(first.token.id, 3_600);
    expect([await works(first.secret), await works(second.secret), await works(third.secret)]).toEqual([
      false,
      true,
      true,
    ]);
    expect(await identify(first.secret)).toBeNull();
    const fourth = await rotate(first.token.id);
    await stops(second.secret);
    await stops(third.secret);
    expect(await works(fourth.secret)).toBe(true);
  });

  test('ends the grace period no later than the token', async () => {
    const { token, secret } = await forPerson();
    await rotate(token.id, 3_600);
    await update(token.id, { expiresAt: '2000-01-01T00:00:00Z' });
    expect(await works(secret)).toBe(false);
  });

  test('in parallel leaves two valid secrets, the current and the previous one', async () => {
    const { token, secret: first } = await forPerson();
    const rotations = await Promise.all(Array.from({ length: 6 }, () => rotate(token.id, 3_600)));
    const working = await Promise.all(rotations.map(({ secret }) => works(secret)));
    expect(working.filter(Boolean)).toHaveLength(2);
    expect(await works(first)).toBe(false);
    const columns = `encode(hash, 'hex') as current, encode(old_hash, 'hex') as previous`;
    const { rows } = await admin.pool.query<object>(`select ${columns} from tokens where id = $1`, [token.id]);
    const valid = rotations.filter((_, i) => working[i]).map(({ secret }) => sha256(secret));
    expect(Object.values(rows[0]!).toSorted()).toEqual(valid.toSorted());
  });

  test('is refused for a revoked or expired token', async () => {
    const params = { tokenId: (await forPerson()).token.id };
    await update(params.tokenId, { expiresAt: '2000-01-01T00:00:00Z' });
    expect((await admin.refused('rotateToken', { params, body: {} }))[0]).toBe('conflict');
    await admin.do('revokeToken', { params });
    for (const name of ['rotateToken', 'updateToken'] as const) {
      expect((await admin.refused(name, { params, body: {} }))[0]).toBe('conflict');
    }
  });
});

test('revoking a token ends its current and old secret, and keeps the time of the first revocation', async () => {
  const { token, secret } = await forPerson();
  const rotated = await rotate(token.id, 3_600);
  expect([await works(secret), await works(rotated.secret)]).toEqual([true, true]);
  const params = { tokenId: token.id };
  const revoked = await admin.do('revokeToken', { params });
  expect(revoked.token.status).toBe('revoked');
  expect(await admin.do('revokeToken', { params })).toEqual(revoked);
  await stops(secret);
  await stops(rotated.secret);
  // Operators can still identify a revoked secret.
  expect(await identify(rotated.secret)).toBe(token.id);
});

test('the expiry of a token is set, moved to the past, and removed', async () => {
  const { token, secret } = await forPerson();
  const statusOf = async (expiresAt: string | null) => (await update(token.id, { expiresAt })).token.status;
  expect(await statusOf('2099-12-31T23:59:59.999+14:00')).toBe('active');
  expect(await works(secret)).toBe(true);
  expect(await statusOf('2020-01-01T00:00:00Z')).toBe('expired');
  await stops(secret);
  expect(await statusOf(null)).toBe('active');
  await eventually(() => works(secret), { what: 'the token works again' });
});

describe('the limits of a token', () => {
  const DEFAULT = 1_000_000_000; // requests per minute in this file

  test('are the defaults of its kind until they are set, and after a reset', async () => {
    const { token: plain } = await forService([agentId]);
    expect(plain).toMatchObject({ requestsPerMinute: null, maxStreams: null });
    expect(plain.limits).toEqual({ requestsPerMinute: DEFAULT, maxStreams: 10_000 });
    const own = { requestsPerMinute: 1, maxStreams: 1_000_000 };
    const { token } = await mint({ kind: 'person', personId, name: 'app', ...own });
    expect(token).toMatchObject({ ...own, limits: own });
    const half = (await update(token.id, { maxStreams: 7 })).token;
    expect(half.limits).toEqual({ requestsPerMinute: 1, maxStreams: 7 });
    const renamed = (await update(token.id, { name: 'renamed' })).token;
    expect(renamed.limits).toEqual(half.limits);
    const { token: reset } = await update(token.id, { requestsPerMinute: null, maxStreams: null });
    expect(reset).toMatchObject({ requestsPerMinute: null, maxStreams: null });
    expect(reset.limits).toEqual({ requestsPerMinute: DEFAULT, maxStreams: 100 });
    const { tokens } = await admin.do('listTokens', { query: { limit: 2 } });
    expect(tokens).toEqual([reset, plain]);
  });

  test('appear in the audit log with their new values', async () => {
    const { token } = await mint({ kind: 'person', personId, name: 'app', requestsPerMinute: 5 });
    await update(token.id, { requestsPerMinute: null, maxStreams: 6 });
    await update(token.id, { maxStreams: 6 });
    const { entries } = await admin.do('listAudit', { query: { targetId: token.id } });
    expect(entries.map(({ action, details }) => [action, details])).toEqual([
      ['token.updated', { requestsPerMinute: null, maxStreams: 6 }],
      ['token.minted', expect.objectContaining({ requestsPerMinute: 5 })],
    ]);
  });

  test.each([0, 1.5, '5', 1_000_001])('are whole numbers from 1 to 1,000,000: %p is refused', async (value) => {
    const { token } = await forPerson();
    for (const name of ['requestsPerMinute', 'maxStreams']) {
      const created = { body: { kind: 'person', personId, name: 'app', [name]: value } };
      const refusals = [
        await admin.refused('mintToken', created),
        await admin.refused('updateToken', { params: { tokenId: token.id }, body: { [name]: value } }),
      ];
      for (const [code, message] of refusals) {
        expect([code, message.startsWith(`body.${name}: `)]).toEqual(['invalid_request', true]);
      }
    }
  });

  test('cover only requests for an operator token, also in a session of the console', async () => {
    const { token, secret } = await mint({ kind: 'operator', name: 'ops', requestsPerMinute: 50 });
    expect(token.limits).toEqual({ requestsPerMinute: 50, maxStreams: null });
    const body = { maxStreams: 5 };
    expect(await admin.refused('updateToken', { params: { tokenId: token.id }, body })).toEqual([
      'invalid_request',
      'An operator token cannot open streams; remove the limit of streams (maxStreams).',
    ]);
    const origin = new URL(admin.url).origin;
    const session = `${origin}/console/session`;
    const headers = { origin, 'content-type': 'application/json', 'spool-page-key': '' };
    const signedIn = await fetch(session, { method: 'POST', headers, body: JSON.stringify({ token: secret }) });
    const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!;
    const { pageKey } = (await signedIn.json()) as { pageKey: string };
    const read = async (): Promise<string | null> =>
      (await fetch(session, { headers: { cookie, 'spool-page-key': pageKey } })).headers.get('ratelimit-limit');
    expect(await read()).toBe('50');
    await update(token.id, { requestsPerMinute: 60 });
    await eventually(async () => (await read()) === '60', { what: 'the session has the new limit', timeoutMs: 5_000 });
  });

  test('apply within 5 s of a change, also to the running window', async () => {
    const { token, secret } = await mint({ kind: 'person', personId, name: 'app', requestsPerMinute: 3 });
    const ask = async (): Promise<[number, string | null]> => {
      const { status, headers } = await admin.api.get(`/agents/${agentId}`, { token: secret });
      return [status, headers.get('ratelimit-limit')];
    };
    const answers: unknown[] = [];
    for (let i = 0; i < 4; i++) answers.push(await ask());
    expect(answers).toEqual([...Array<unknown>(3).fill([200, '3']), [429, '3']]);
    await update(token.id, { requestsPerMinute: 1_000 });
    const raised = eventually(async () => (await ask())[0] === 200, { what: 'the limit is raised', timeoutMs: 5_000 });
    await raised;
    await update(token.id, { requestsPerMinute: 1 });
    const lowered = { what: 'the limit is lowered', timeoutMs: 5_000 };
    await eventually(async () => (await ask())[0] === 429, lowered);
    expect(await ask()).toEqual([429, '1']);
  });
});

describe('the agents of a service token', () => {
  test('are added and removed, only from its organization, and at least one remains', async () => {
    const { api } = admin;
    const [second, third] = [await api.newAgent(), await api.newAgent()];
    const { token } = await forService([agentId]);
    const agentsOf = async () => (await admin.do('getToken', { params: { tokenId: token.id } })).token.agentIds;
    const changed = await update(token.id, { addAgentIds: [second, third, second], removeAgentIds: [agentId] });
    expect(changed.token.agentIds).toEqual([second, third].toSorted());
    await update(token.id, { removeAgentIds: [third, agentId] });
    expect(await agentsOf()).toEqual([second]);

    const foreign = await api.newAgent({ organizationId: await api.access.createOrganization('Foreign') });
    const refused = async (body: object) =>
      (await admin.refused('updateToken', { params: { tokenId: token.id }, body: { name: 'changed', ...body } }))[0];
    expect(await refused({ removeAgentIds: [second] })).toBe('invalid_request');
    expect(await refused({ addAgentIds: [third, foreign] })).toBe('invalid_request');
    expect(await refused({ addAgentIds: [third], removeAgentIds: [second], allowAttribution: 'no' })).toBe(
      'invalid_request',
    );
    const { token: after } = await admin.do('getToken', { params: { tokenId: token.id } });
    expect([after.agentIds, after.name]).toEqual([[second], 'bot']);
  });

  test('are at most 100', async () => {
    const agentIds: string[] = [];
    for (let i = 0; i < 100; i++) agentIds.push(await admin.api.newAgent());
    const { token } = await forService(agentIds);
    const body = { addAgentIds: [agentId] };
    expect((await admin.refused('updateToken', { params: { tokenId: token.id }, body }))[1]).toContain('not 101');
    const swapped = await update(token.id, { ...body, removeAgentIds: [agentIds[0]!] });
    expect(swapped.token.agentIds).toHaveLength(100);
  });

  test('are not all removed by two parallel requests', async () => {
    for (let i = 0; i < 5; i++) {
      const second = await admin.api.newAgent();
      const { token } = await forService([agentId, second]);
      const statuses = await Promise.all(
        [agentId, second].map(async (each) => {
          const sent = { params: { tokenId: token.id }, body: { removeAgentIds: [each] } };
          return (await admin.send('updateToken', sent)).status;
        }),
      );
      expect(statuses.toSorted()).toEqual([200, 400]);
    }
  });
});
