import { randomBytes } from 'node:crypto';
import { DATABASE, type Database } from '#platform';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { originOf, sendToken, signedIn, signIn, type Signed } from './signed-in.testing.ts';

// Real: HTTP and PostgreSQL. These tests attack an operator's session as a neighbour of the service: a service on another port
// of the host receives its cookies, and a sibling domain can set cookies of the same name.

let api: ApiUnderTest;
let operator: { id: string; token: string };

beforeAll(async () => {
  api = await ApiUnderTest.start({ settings: { RATE_LIMIT_STORE: 'process' } });
  operator = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
});
afterAll(() => api.stop());

type Headers = Record<string, string>;

const session = (pod: ApiUnderTest, headers: Headers, method = 'GET') =>
  fetch(`${originOf(pod)}/console/session`, { method, headers });
const admin = async (pod: ApiUnderTest, headers: Headers): Promise<number> =>
  (await fetch(`${originOf(pod)}/admin/v1/queue`, { headers })).status;
const pause = (pod: ApiUnderTest, headers: Headers) =>
  fetch(`${originOf(pod)}/admin/v1/queue/resume`, { method: 'POST', headers });
const board = async (headers: Headers): Promise<number> =>
  (await fetch(`${originOf(api)}/console/queues/api/queues`, { headers })).status;
const newValue = (): string => randomBytes(32).toString('base64url');

describe('a cookie stolen through another port of the host', () => {
  it('is useless without the key of the page', async () => {
    const { cookie, headers, reads } = await signIn(api, operator.token);
    expect([await admin(api, reads), await board(reads), (await session(api, reads)).status]).toEqual([200, 200, 200]);
    const other = await signIn(api, operator.token);
    for (const key of [{}, { 'spool-page-key': '' }, { 'spool-page-key': newValue() }, otherKey(other)]) {
      const stolen = { cookie, ...key };
      expect([await admin(api, stolen), await board(stolen), (await session(api, stolen)).status]).toEqual([
        401, 401, 204,
      ]);
      expect((await pause(api, { ...stolen, origin: headers.origin })).status).toBe(401);
    }
    // The attempt does not end the session.
    expect((await session(api, { cookie, origin: headers.origin }, 'DELETE')).status).toBe(204);
    expect(await admin(api, reads)).toBe(200);
  });

  it('does not open the session of another page', async () => {
    const [mine, theirs] = [await signIn(api, operator.token), await signIn(api, operator.token)];
    expect(await admin(api, { cookie: theirs.cookie, 'spool-page-key': mine.pageKey })).toBe(401);
  });

  it('does not reveal the key, because only the sign-in response contains it', async () => {
    const { pageKey, headers, reads } = await signIn(api, operator.token);
    const answers = [await session(api, reads), await session(api, headers, 'DELETE')];
    for (const answer of answers) {
      const all = JSON.stringify([...answer.headers]) + (await answer.text());
      expect(all).not.toContain(pageKey);
    }
  });
});

const otherKey = ({ pageKey }: Signed): Headers => ({ 'spool-page-key': pageKey });

describe('a cookie of the same name set by a sibling domain', () => {
  it('does not lock the operator out, in first or last position', async () => {
    const { cookie, headers, reads } = await signIn(api, operator.token);
    const bad = ['x', newValue(), `${newValue()}${newValue()}`, '"quoted"'].map((value) => `spool_session=${value}`);
    const cookies = [...bad.map((one) => `${one}; ${cookie}`), ...bad.map((one) => `${cookie}; ${one}`)];
    for (const all of cookies) {
      expect([all, await admin(api, { ...reads, cookie: all })]).toEqual([all, 200]);
    }
    const signedOut = await session(api, { ...headers, cookie: cookies[1]! }, 'DELETE');
    expect([signedOut.status, await admin(api, reads)]).toEqual([204, 401]);
  });

  it('does not prevent the operator from signing in', async () => {
    const planted = { cookie: `spool_session=${newValue()}` };
    const { cookie, reads } = await signIn(api, operator.token, planted);
    expect(await admin(api, { ...reads, cookie: `${planted.cookie}; ${cookie}` })).toBe(200);
  });

  it('causes no look-up, even 200 of them', async () => {
    const { cookie, reads } = await signIn(api, operator.token);
    const planted = Array.from({ length: 200 }, () => `spool_session=${newValue()}`).join('; ');
    expect(await admin(api, reads)).toBe(200);
    const asked = jest.spyOn(api.app.get<Database>(DATABASE).pool, 'query');
    const lookups = (): number =>
      asked.mock.calls.filter(([statement]: unknown[]) => (statement as { name?: string }).name === 'find-session')
        .length;
    try {
      expect(await admin(api, { ...reads, cookie: `${planted}; ${cookie}` })).toBe(200);
      expect(await admin(api, { ...reads, cookie: planted })).toBe(401);
      expect(await admin(api, { cookie: planted })).toBe(401);
      expect(lookups()).toBe(0);
    } finally {
      asked.mockRestore();
    }
  });
});

describe('on https', () => {
  const PUBLIC = 'https://public.example';
  let publicPod: ApiUnderTest;
  let proxied: ApiUnderTest;
  beforeAll(async () => {
    const settings = { DATABASE_URL: api.databaseUrl, RATE_LIMIT_STORE: 'process' as const };
    [publicPod, proxied] = await Promise.all([
      ApiUnderTest.start({ settings: { ...settings, PUBLIC_BASE_URL: `${PUBLIC}/spool` } }),
      ApiUnderTest.start({ settings: { ...settings, TRUSTED_PROXIES: 1 } }),
    ]);
  });
  afterAll(() => Promise.all([publicPod.stop(), proxied.stop()]));

  const HTTPS_COOKIE = /^__Host-spool_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/;

  it('the cookie has the prefix __Host-, by the public address or by a trusted proxy', async () => {
    const through = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'proxy.example' };
    for (const [pod, headers] of [
      [publicPod, { origin: PUBLIC }],
      [proxied, { ...through, origin: 'https://proxy.example' }],
    ] as const) {
      const sent = await sendToken(pod, operator.token, headers);
      expect(sent.headers.getSetCookie()).toEqual([expect.stringMatching(HTTPS_COOKIE)]);
      const { reads } = await signedIn(pod, sent);
      expect(await admin(pod, { ...headers, ...reads })).toBe(200);
      // A sibling domain can set this name, but not the one with the prefix.
      const unprefixed = reads.cookie.replace('__Host-', '');
      expect(await admin(pod, { ...headers, ...reads, cookie: unprefixed })).toBe(401);
      const ended = await session(pod, { ...reads, ...headers }, 'DELETE');
      expect(ended.headers.getSetCookie()).toEqual([
        '__Host-spool_session=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0',
      ]);
    }
  });

  it('the cookie has no prefix if the protocol header is not trusted', async () => {
    const sent = await sendToken(api, operator.token, { 'x-forwarded-proto': 'https' });
    expect(sent.headers.getSetCookie()).toEqual([expect.stringMatching(/^spool_session=[\w-]{43};(?!.*Secure)/)]);
  });

  it('an Origin of another scheme or port is refused', async () => {
    const through = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'proxy.example' };
    const refused = async (pod: ApiUnderTest, headers: Headers): Promise<number> =>
      (await sendToken(pod, operator.token, headers)).status;
    const { host } = new URL(api.url);
    for (const [pod, headers, status] of [
      [publicPod, { origin: PUBLIC }, 200],
      [publicPod, { origin: `${PUBLIC}:443` }, 200],
      [publicPod, { origin: 'http://public.example' }, 403],
      [publicPod, { origin: `${PUBLIC}:8443` }, 403],
      [publicPod, { origin: 'http://public.example:443' }, 403],
      [proxied, { ...through, origin: 'https://proxy.example' }, 200],
      [proxied, { ...through, origin: 'http://proxy.example' }, 403],
      [proxied, { ...through, origin: 'https://proxy.example:444' }, 403],
      [proxied, { ...through, 'x-forwarded-host': 'proxy.example:444', origin: 'https://proxy.example:444' }, 200],
      [api, { origin: `https://${host}` }, 403],
      [api, { origin: `ftp://${host}` }, 403],
    ] as const) {
      expect([headers, await refused(pod, headers)]).toEqual([headers, status]);
    }
  });
});

it('a sign-in from a page of an older release gets 400 and the advice to reload', async () => {
  const headers = { 'content-type': 'application/json', origin: originOf(api) };
  const body = JSON.stringify({ token: operator.token });
  const answer = await fetch(`${originOf(api)}/console/session`, { method: 'POST', headers, body });
  expect([answer.status, ((await answer.json()) as { error: { message: string } }).error.message]).toEqual([
    400,
    'Spool-Page-Key: must be sent; the page of an older release does not send it, so reload it and sign in again',
  ]);
  expect(answer.headers.getSetCookie()).toEqual([]);
});
