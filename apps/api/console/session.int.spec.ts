import { createLogger, DATABASE, type Database } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { originOf, sendToken, signedIn, signIn, type Signed } from './signed-in.testing.ts';

// Real: HTTP, PostgreSQL, two pods.

let api: ApiUnderTest;
/** Another pod on the same database. */
let other: ApiUnderTest;
let operator: { id: string; token: string };

beforeAll(async () => {
  // Counts requests in the process. With a slow PostgreSQL, some would be counted there and some in the pod.
  api = await ApiUnderTest.start({ settings: { RATE_LIMIT_STORE: 'process' } });
  other = await ApiUnderTest.start({ settings: { DATABASE_URL: api.databaseUrl } });
});
afterAll(async () => {
  await other.stop();
  await api.stop();
});
beforeEach(async () => {
  operator = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
});

const session = (pod: ApiUnderTest, method: string, headers: Record<string, string>) =>
  fetch(`${originOf(pod)}/console/session`, { method, headers });
const statusOf = async (pod: ApiUnderTest, { reads }: Signed) => (await session(pod, 'GET', reads)).status;
const admin = (pod: ApiUnderTest, path: string, init: RequestInit) => fetch(`${originOf(pod)}/admin/v1${path}`, init);
const newPerson = (pod: ApiUnderTest, headers: Record<string, string>) =>
  admin(pod, '/people', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ name: 'New' }),
  });
const codeOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: { code: string } }).error.code,
];

/** Moves a time of the operator's sessions into the past. */
async function letTimePass(column: 'last_used_at' | 'expires_at', interval: string): Promise<void> {
  await api.pool.query(`update operator_sessions set ${column} = ${column} - $1::interval where token_id = $2`, [
    interval,
    operator.id,
  ]);
  // Invalidates the caches of all processes.
  await api.pool.query('update policy_version set version = version + 1');
}

const ends = (pod: ApiUnderTest, signed: Signed) =>
  eventually(async () => (await statusOf(pod, signed)) === 204, { what: 'the session ends' });

describe('signing in', () => {
  it('sets an HttpOnly SameSite cookie and returns the operator', async () => {
    const response = await sendToken(api, operator.token);
    expect(response.status).toBe(200);
    const { pageKey, ...body } = (await response.json()) as { expiresAt: string; pageKey: string };
    expect(pageKey).toMatch(/^[\w-]{43}$/);
    expect(body).toEqual({ operator: { tokenId: operator.id, name: 'Grace' }, expiresAt: body.expiresAt });
    const hours = (Date.parse(body.expiresAt) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(11.9);
    expect(hours).toBeLessThanOrEqual(12);
    const [cookie] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^spool_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const asked = await session(api, 'GET', { cookie: cookie!.split(';')[0]!, 'spool-page-key': pageKey });
    expect([asked.status, await asked.json()]).toEqual([200, body]);
  });

  it('stores neither the token, nor the value of the cookie, nor the key of the page', async () => {
    const { cookie, pageKey } = await signIn(api, operator.token);
    const { rows } = await api.pool.query<{ row: string }>('select s::text as row from operator_sessions s');
    const all = rows.map(({ row }) => row).join();
    expect(all).toContain(operator.id);
    expect(all).not.toContain(operator.token.slice('spool_op_'.length));
    expect(all).not.toContain(cookie.split('=')[1]);
    expect(all).not.toContain(pageKey);
  });

  it('returns the same response for all tokens that cannot sign in', async () => {
    const expired = await api.access.mintToken({ kind: 'operator', name: 'o', expiresAt: new Date() });
    const revoked = await api.access.mintToken({ kind: 'operator', name: 'o' });
    await api.access.revokeToken(revoked.id);
    const answers = new Set<string>();
    for (const token of [api.token, expired.token, revoked.token, 'spool_op_x', '', 'Bearer']) {
      const response = await sendToken(api, token);
      expect([response.status, response.headers.getSetCookie()]).toEqual([401, []]);
      answers.add(await response.text());
    }
    expect([...answers]).toHaveLength(1);
  });

  it.each([[{ token: 7 }], [{}], [{ token: 'x', more: 1 }], [[]]])('returns 400 for the body %j', async (body) => {
    const headers = { 'content-type': 'application/json', origin: originOf(api) };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    expect(await codeOf(await fetch(`${originOf(api)}/console/session`, init))).toEqual([400, 'invalid_request']);
  });

  it('returns 403 to pages of other origins', async () => {
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:1', '']) {
      expect(await codeOf(await sendToken(api, operator.token, { origin }))).toEqual([403, 'forbidden']);
    }
  });

  it('adds an audit entry, and so does signing out', async () => {
    const { headers } = await signIn(api, operator.token);
    await session(api, 'DELETE', headers);
    await session(api, 'DELETE', headers);
    const { rows } = await api.pool.query(
      'select action, actor_kind, actor_name, target_id from audit_entries where actor_id = $1 order by id',
      [operator.id],
    );
    const entry = { actor_kind: 'operator', actor_name: 'Grace', target_id: operator.id };
    expect(rows).toEqual([
      { action: 'session.opened', ...entry },
      { action: 'session.closed', ...entry },
    ]);
  });
});

it('signing in again ends the session of the cookie that was sent', async () => {
  const ada = await api.access.mintToken({ kind: 'operator', name: 'Ada' });
  const before = await signIn(api, operator.token);
  expect(await statusOf(api, before)).toBe(200);
  const after = await signedIn(api, await sendToken(api, ada.token, before.reads));
  expect([await statusOf(api, before), await statusOf(api, after)]).toEqual([204, 200]);
  const { rows } = await api.pool.query(
    'select action, target_id as target from audit_entries where actor_id = $1 order by id',
    [ada.id],
  );
  expect(rows).toEqual([
    { action: 'session.closed', target: operator.id },
    { action: 'session.opened', target: ada.id },
  ]);
});

it('a refused sign-in does not end the session of the cookie that was sent', async () => {
  const before = await signIn(api, operator.token);
  expect((await sendToken(api, 'spool_op_wrong', before.reads)).status).toBe(401);
  expect(await statusOf(api, before)).toBe(200);
});

it('responses to operators have Cache-Control: no-store', async () => {
  const { reads } = await signIn(api, operator.token);
  const answers = [
    await admin(api, '/queue', { headers: reads }),
    await admin(api, '/queue', {}),
    await admin(api, '/runs/none', { headers: reads }),
    await session(api, 'GET', reads),
    await session(api, 'GET', {}),
    await sendToken(api, 'spool_op_wrong'),
    await fetch(`${originOf(api)}/metrics`, { headers: reads }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 400, 200, 204, 401, 200]);
  for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store');
});

describe('the admin API', () => {
  it('accepts the cookie on every pod, and records the token as the actor', async () => {
    const { reads } = await signIn(api, operator.token);
    expect((await admin(other, '/queue', { headers: reads })).status).toBe(200);
    expect((await newPerson(other, { ...reads, origin: originOf(other) })).status).toBe(201);
    const { rows } = await api.pool.query('select action from audit_entries where actor_id = $1 order by id', [
      operator.id,
    ]);
    expect(rows).toEqual([{ action: 'session.opened' }, { action: 'person.created' }]);
  });

  it('changes nothing for a page of another origin', async () => {
    const { reads } = await signIn(api, operator.token);
    const origins = [undefined, 'null', '', 'http://evil.example', `${originOf(api)}1`, 'http://localhost'];
    for (const origin of origins) {
      const refused = await newPerson(api, { ...reads, ...(origin === undefined ? {} : { origin }) });
      expect([origin, ...(await codeOf(refused))]).toEqual([origin, 403, 'forbidden']);
    }
    const forged = { 'x-forwarded-host': 'evil.example', origin: 'http://evil.example', ...reads };
    expect((await newPerson(api, forged)).status).toBe(403);
    expect((await newPerson(api, { authorization: `Bearer ${operator.token}`, ...reads })).status).toBe(201);
  });

  it('ignores the cookie if there is an Authorization header', async () => {
    const { headers } = await signIn(api, operator.token);
    expect((await admin(api, '/queue', { headers: { ...headers, authorization: 'Bearer x' } })).status).toBe(401);
  });

  it('counts the session’s requests with those of its token', async () => {
    const { reads } = await signIn(api, operator.token);
    const left = async (headers: Record<string, string>) =>
      Number((await admin(api, '/queue', { headers })).headers.get('ratelimit-remaining'));
    const before = await left({ authorization: `Bearer ${operator.token}` });
    expect(await left(reads)).toBe(before - 1);
  });
});

it('the Agent Threads API does not accept the cookie', async () => {
  const { headers } = await signIn(api, operator.token);
  expect((await api.get(`/agents/${api.agentId}`, { token: null, headers })).status).toBe(401);
  expect((await api.post(`/agents/${api.agentId}/threads`, { token: null, headers, body: {} })).status).toBe(401);
});

describe('a session', () => {
  it('ends on all pods with signing out', async () => {
    const signed = await signIn(api, operator.token);
    const stays = await signIn(api, operator.token);
    expect([await statusOf(api, signed), await statusOf(other, signed)]).toEqual([200, 200]);
    const ended = await session(api, 'DELETE', signed.headers);
    expect([ended.status, ended.headers.getSetCookie()]).toEqual([
      204,
      ['spool_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0'],
    ]);
    expect(ended.headers.get('ratelimit-remaining')).toMatch(/^\d+$/);
    expect(await statusOf(api, signed)).toBe(204);
    await ends(other, signed);
    expect((await admin(other, '/queue', { headers: signed.headers })).status).toBe(401);
    expect(await statusOf(other, stays)).toBe(200);
  });

  it('cannot be ended by another page, or by a request without an Origin', async () => {
    const signed = await signIn(api, operator.token);
    for (const other of [{}, { origin: 'http://evil.example' }, { origin: `${originOf(api)}1` }]) {
      expect((await session(api, 'DELETE', { ...signed.reads, ...other })).status).toBe(403);
    }
    expect(await statusOf(api, signed)).toBe(200);
  });

  it.each([
    ['its token is revoked', () => api.access.revokeToken(operator.id)],
    ['its token expires', () => api.access.updateToken(operator.id, { expiresAt: new Date() })],
    ['its token is deleted', () => api.pool.query('delete from tokens where id = $1', [operator.id])],
    ['the secret it was opened with is rotated out', () => api.access.rotateToken(operator.id, 'operator', 0)],
    ['it is unused for an hour', () => letTimePass('last_used_at', '1 hour')],
    ['it is twelve hours old', () => letTimePass('expires_at', '12 hours')],
  ])('ends when %s', async (_, change) => {
    const signed = await signIn(api, operator.token);
    expect([await statusOf(api, signed), await statusOf(other, signed)]).toEqual([200, 200]);
    await change();
    await Promise.all([ends(api, signed), ends(other, signed)]);
  });

  it('outlives a rotation for as long as the old secret does', async () => {
    const signed = await signIn(api, operator.token);
    await api.access.rotateToken(operator.id, 'operator', 600);
    await eventually(
      async () => {
        const { expiresAt } = (await (await session(api, 'GET', signed.headers)).json()) as { expiresAt: string };
        return Date.parse(expiresAt) - Date.now() < 601_000;
      },
      { what: 'the session shows its earlier end' },
    );
  });

  it('has its use and that of its token written once a minute', async () => {
    const signed = await signIn(api, operator.token);
    const table = { session: 'operator_sessions where token_id', token: 'tokens where id' };
    /** Returns the seconds since the last use. */
    const unused = async (what: keyof typeof table) => {
      const ago = `extract(epoch from clock_timestamp() - last_used_at)::float8 as ago`;
      const { rows } = await api.pool.query<{ ago: number }>(`select ${ago} from ${table[what]} = $1`, [operator.id]);
      return rows[0]!.ago;
    };
    await api.pool.query(`update tokens set last_used_at = now() - interval '2 hours' where id = $1`, [operator.id]);
    await letTimePass('last_used_at', '50 seconds');
    // This pod has not cached the session.
    const queried = jest.spyOn(other.app.get<Database>(DATABASE).pool, 'query');
    expect(await statusOf(other, signed)).toBe(200);
    const isTouch = ([statement]: unknown[]) => (statement as { name?: string }).name === 'touch-session';
    await eventually(() => queried.mock.calls.some(isTouch), { what: 'the use is sent' });
    await Promise.all(queried.mock.results.map(({ value }) => value as unknown));
    queried.mockRestore();
    expect(await unused('session')).toBeGreaterThan(49);
    await letTimePass('last_used_at', '20 seconds');
    const third = await ApiUnderTest.start({ settings: { DATABASE_URL: api.databaseUrl } });
    try {
      expect(await statusOf(third, signed)).toBe(200);
      await eventually(async () => (await unused('session')) < 30, { what: 'the use is written' });
      expect(await unused('token')).toBeLessThan(30);
    } finally {
      await third.stop();
    }
  });
});

describe.each([
  ['its session', ({ headers }: Signed) => session(other, 'DELETE', { ...headers, origin: originOf(other) })],
  ['its token', () => api.access.revokeToken(operator.id)],
])('a long response', (what, end) => {
  const body = async (): Promise<void> => {
    operator = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
    const signed = await signIn(api, operator.token);
    const threadId = await api.newThread({ text: 'Hello' });
    const response = await admin(api, `/threads/${threadId}/tail`, { headers: signed.headers });
    const ended = response.text();
    await end(signed);
    expect((await ended).trimEnd().split('\n').at(-1)).toContain('"unauthenticated"');
  };
  test(`ends with ${what}`, body, 30_000);
});

describe('behind a proxy', () => {
  let pods: [ApiUnderTest, ApiUnderTest];
  let log = '';
  beforeAll(async () => {
    const settings = {
      DATABASE_URL: api.databaseUrl,
      TRUSTED_PROXIES: 1,
      PUBLIC_BASE_URL: 'https://public.example/spool',
    };
    const logger = createLogger('info', 'test', { write: (line) => void (log += line) });
    pods = [await ApiUnderTest.start({ settings, logger }), await ApiUnderTest.start({ settings, logger })];
  });
  afterAll(() => Promise.all(pods.map((pod) => pod.stop())));

  it('accepts the origin of the forwarded host and protocol, and that of the public address', async () => {
    const through = { 'x-forwarded-host': 'proxy.example', 'x-forwarded-proto': 'https' };
    const sent = await sendToken(pods[0], operator.token, { ...through, origin: 'https://proxy.example' });
    expect([sent.status, sent.headers.getSetCookie()[0]]).toEqual([200, expect.stringContaining('; Secure')]);
    for (const [origin, status] of Object.entries({ 'https://public.example': 200, 'https://other.example': 403 })) {
      expect((await sendToken(pods[0], operator.token, { origin })).status).toBe(status);
    }
    // The browser uses the public address, even if the proxy does not send it.
    const [cookie] = (await sendToken(pods[0], operator.token)).headers.getSetCookie();
    expect(cookie).toContain('; Secure');
  });

  it('accepts ten wrong tokens a minute from one address on all pods together, not counting valid tokens', async () => {
    const network = '10.0.1.1';
    const from = (pod: ApiUnderTest, token: string, address = network): Promise<Response> =>
      sendToken(pod, token, { 'x-forwarded-for': address });
    const wrong = 'spool_op_wrong';
    const answers: Response[] = [];
    for (let i = 0; i < 9; i++) answers.push(await from(pods[i % 2]!, wrong));
    for (let i = 0; i < 3; i++) answers.push(await from(pods[1], operator.token));
    answers.push(await from(pods[0], wrong));
    for (const token of [wrong, operator.token]) answers.push(await from(pods[1], token));
    answers.push(await from(pods[1], operator.token, '10.0.0.2'));
    const nine = Array.from({ length: 9 }, () => 401);
    expect(answers.map(({ status }) => status)).toEqual([...nine, 200, 200, 200, 401, 429, 429, 200]);
    for (const { headers } of answers.filter(({ status }) => status === 429)) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
    }
    const refused = log
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { msg: string; level: string; network: string; code: string })
      .filter((line) => line.msg === 'sign-in refused' && line.network === network);
    expect(refused.map(({ level, code }) => `${level} ${code}`)).toEqual([
      ...Array.from({ length: 10 }, () => 'warn unauthenticated'),
      ...Array.from({ length: 2 }, () => 'warn rate_limited'),
    ]);
    expect(log).not.toMatch(/spool_op_/);
  });
});

it('40 parallel wrong tokens get no more than ten attempts', async () => {
  const pod = await ApiUnderTest.start({ settings: { RATE_LIMIT_STORE: 'process' } });
  try {
    const attempts = await Promise.all(Array.from({ length: 40 }, () => sendToken(pod, 'spool_op_wrong')));
    expect(attempts.filter(({ status }) => status === 401)).toHaveLength(10);
  } finally {
    await pod.stop();
  }
});
