import { newId } from '#platform';
import { ApiUnderTest } from '../api-under-test.testing.ts';

const ORIGIN = 'https://app.example';

let api: ApiUnderTest;
let service: string;
let browser: string;

beforeAll(async () => {
  const settings = { BROWSER_TOKEN_KEYS: `k:${'a'.repeat(43)}=`, RATE_LIMIT_PER_BROWSER_USER: 3 } as const;
  api = await ApiUnderTest.start({ settings });
  const { organizationId, agentId } = api;
  const wanted = { kind: 'service', organizationId, agentIds: [agentId], name: 'app' } as const;
  service = (await api.access.mintToken(wanted)).token;
  browser = await tokenFor('ada');
});
afterAll(() => api.stop());

async function tokenFor(userId: string): Promise<string> {
  const body = { userId, verbs: ['read'], origins: [ORIGIN] };
  const { json } = await api.post('/browser-tokens', { token: service, body });
  return (json as unknown as { token: string }).token;
}

interface Asked {
  method?: string;
  token?: string | null;
  headers?: Record<string, string>;
}

const ask = (path: string, { method = 'GET', token = null, headers = {} }: Asked = {}): Promise<Response> =>
  fetch(path.startsWith('http') ? path : `${api.url}${path}`, {
    method,
    headers: { origin: ORIGIN, ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });

const corsOf = ({ headers }: Response): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));

test('a preflight needs no token and allows what browsers need', async () => {
  for (const path of ['/threads', `/files/${newId()}`, '/nowhere']) {
    const headers = { 'access-control-request-method': 'PATCH', 'access-control-request-headers': 'authorization' };
    const response = await ask(path, { method: 'OPTIONS', headers });
    expect([response.status, corsOf(response)]).toEqual([
      204,
      {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
        'access-control-allow-headers':
          'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, If-None-Match, Range',
        'access-control-max-age': '7200',
        'access-control-expose-headers': expect.stringContaining('Spool-Error-Reason') as string,
      },
    ]);
  }
});

describe('a page can read', () => {
  test('the answers to a browser token, and each refusal', async () => {
    const fresh = await tokenFor('bob');
    const spent = await tokenFor('eve');
    for (let i = 0; i < 3; i++) await ask(`/agents/${api.agentId}`, { token: spent });
    const asked: [string, Asked, number][] = [
      [`/agents/${api.agentId}`, { token: browser }, 200],
      [`/threads/${newId()}`, { token: browser }, 404],
      [`/threads/${newId()}`, { token: fresh, method: 'DELETE' }, 403],
      [`/agents/${api.agentId}`, { token: fresh, headers: { origin: 'https://other.example' } }, 403],
      [`/agents/${api.agentId}`, { token: spent }, 429],
      ['/threads', {}, 401],
      ['/threads', { token: 'spool_bt_a.b.c' }, 401],
      ['/threads', { method: 'PUT' }, 405],
      ['/nowhere', {}, 404],
      ['/threads/%zz', {}, 400],
    ];
    for (const [path, request, status] of asked) {
      const response = await ask(path, request);
      expect([path, response.status, corsOf(response)]).toEqual([
        path,
        status,
        {
          'access-control-allow-origin': '*',
          'access-control-expose-headers': expect.stringMatching(
            /^Retry-After, .*, Spool-Thread-Id, X-Request-Id, Allow$/,
          ) as string,
        },
      ]);
    }
  });

  test('an event stream', async () => {
    const body = { userId: 'stream' };
    const { json } = await api.post(`/agents/${api.agentId}/threads`, { token: service, body });
    const response = await ask(`/threads/${json.thread.id}/events/stream`, { token: await tokenFor('stream') });
    await response.body?.cancel();
    expect([response.status, corsOf(response)['access-control-allow-origin']]).toEqual([200, '*']);
  });
});

describe('a page can read nothing', () => {
  test('of a person or a service, whose requests are served as before', async () => {
    for (const token of [service, api.token]) {
      for (const [path, status] of [
        [`/agents/${api.agentId}`, 200],
        [`/threads/${newId()}`, 404],
      ] as const) {
        const response = await ask(path, { token });
        expect([response.status, corsOf(response)]).toEqual([status, {}]);
      }
    }
  });

  test('outside of the API', async () => {
    const { origin } = new URL(api.url);
    for (const path of ['/health/live', '/console', '/admin/v1/overview', '/api/docs']) {
      const response = await ask(`${origin}${path}`);
      await response.body?.cancel();
      expect([path, corsOf(response), response.headers.get('vary')?.includes('Origin') ?? false]).toEqual([
        path,
        {},
        false,
      ]);
    }
    const headers = { 'access-control-request-method': 'POST' };
    const preflight = await ask(`${origin}/admin/v1/tokens`, { method: 'OPTIONS', headers });
    expect([preflight.status, corsOf(preflight)]).toEqual([405, {}]);
  });
});

test('OPTIONS that is no preflight is a wrong method, as without an Origin', async () => {
  for (const path of ['/threads', '/openapi.json']) {
    const [here, plain] = [
      await ask(path, { method: 'OPTIONS' }),
      await fetch(`${api.url}${path}`, { method: 'OPTIONS' }),
    ];
    expect([here.status, here.headers.get('spool-error-reason')]).toEqual([405, 'method_not_allowed']);
    expect(here.headers.get('allow')).toBe(plain.headers.get('allow'));
    expect(await here.text()).toBe(await plain.text());
  }
});

test('without an Origin, an answer has no new header', async () => {
  const response = await fetch(`${api.url}/threads`);
  expect([corsOf(response), response.headers.get('vary')]).toEqual([{}, null]);
});
