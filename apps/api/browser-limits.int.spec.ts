import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL.

const KEYS = `k:${'a'.repeat(43)}=`;

let limited: ApiUnderTest;
let service: string;

beforeAll(async () => {
  const settings = { BROWSER_TOKEN_KEYS: KEYS, RATE_LIMIT_PER_BROWSER_USER: 5, STREAMS_PER_BROWSER_USER: 2 } as const;
  limited = await ApiUnderTest.start({ settings });
  const { organizationId } = limited;
  const wanted = { kind: 'service', organizationId, agentIds: [limited.agentId], name: 'app' } as const;
  service = (await limited.access.mintToken({ ...wanted, requestsPerMinute: 1_000 })).token;
});
afterAll(() => limited.stop());

const token = async (userId: string, expiresInSeconds = 60): Promise<string> => {
  const body = { userId, verbs: ['read', 'send'], expiresInSeconds };
  const { json } = await limited.post('/browser-tokens', { token: service, body });
  return (json as unknown as { token: string }).token;
};

test('limits hold for all tokens of a user together, for each user alone, and count for the service token', async () => {
  const get = (of: string) => limited.get(`/agents/${limited.agentId}`, { token: of });
  const [first, second, other] = [await token('ada'), await token('ada', 61), await token('bob')];
  const statuses = [];
  for (const one of [first, second, first, second, first]) statuses.push((await get(one)).status);
  const over = await get(second);
  expect([...statuses, over.status, (await get(other)).status]).toEqual([200, 200, 200, 200, 200, 429, 200]);
  expect(over.headers.get('ratelimit-limit')).toBe('5');
  expect(over.json.error.message).toMatch(/^Requests of this user are limited to 5 a minute/);
  // Three tokens were created, and six requests of users counted: the refused one did not.
  expect((await get(service)).headers.get('ratelimit-remaining')).toBe(String(1_000 - 3 - 6 - 1));
});

test('limits of streams hold for all tokens of a user together', async () => {
  const [first, second] = [await token('eve'), await token('eve', 61)];
  const body = { userId: 'eve' };
  const { json } = await limited.post(`/agents/${limited.agentId}/threads`, { token: first, body });
  const open = (of: string) =>
    fetch(`${limited.url}/threads/${json.thread.id}/events/stream`, { headers: { authorization: `Bearer ${of}` } });
  const streams = [await open(first), await open(second), await open(second)];
  const others = await fetch(`${limited.url}/threads/${json.thread.id}/events/stream`, {
    headers: { authorization: `Bearer ${service}` },
  });
  expect([...streams, others].map(({ status }) => status)).toEqual([200, 200, 429, 200]);
  for (const stream of [...streams, others]) await stream.body?.cancel();
});

test('limits of streams hold for all users of a service token together', async () => {
  const { organizationId, agentId: own } = limited;
  const wanted = { kind: 'service', organizationId, agentIds: [own], name: 'app', maxStreams: 1 } as const;
  const { token: full } = await limited.access.mintToken(wanted);
  const open = async (userId: string) => {
    const { json: minted } = await limited.post('/browser-tokens', {
      token: full,
      body: { userId, verbs: ['read'] },
    });
    const { json } = await limited.post(`/agents/${own}/threads`, { token: full, body: { userId } });
    const headers = { authorization: `Bearer ${(minted as unknown as { token: string }).token}` };
    return fetch(`${limited.url}/threads/${json.thread.id}/events/stream`, { headers });
  };
  const streams = [await open('ada'), await open('bob')];
  expect(streams.map(({ status }) => status)).toEqual([200, 429]);
  expect(streams[1]!.headers.get('spool-error-reason')).toBe('too_many_streams');
  for (const stream of streams) await stream.body?.cancel();
});
