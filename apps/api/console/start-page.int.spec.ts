import { ApiUnderTest } from '../api-under-test.testing.ts';
import { StartPage } from './start-page.ts';

let api: ApiUnderTest;
let origin: string;
beforeAll(async () => {
  api = await ApiUnderTest.start();
  origin = new URL(api.url).origin;
});
afterAll(() => api.stop());

const read = (accept: string, method = 'GET') => fetch(`${origin}/`, { method, headers: { accept } });

test('shows people links that work, and needs no token', async () => {
  const response = await read('text/html,application/xhtml+xml,*/*;q=0.8');
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(response.headers.get('vary')).toContain('Accept');
  const html = await response.text();
  expect(html).not.toContain('<script');
  const hrefs = [...html.matchAll(/<a href="([^"]+)"/g)].map(([, href]) => href!);
  expect(hrefs).toHaveLength(4);
  for (const href of hrefs) {
    const { status } = await fetch(new URL(href, origin));
    // The console is 404 if only the sources run, and the service is 503 where a part of it is missing.
    expect([href, [200, ...(href === 'console' ? [404] : []), ...(href.startsWith('health') ? [503] : [])]]).toEqual([
      href,
      expect.arrayContaining([status]) as number[],
    ]);
  }
});

test('its policy allows its own style and nothing else inline', async () => {
  const policy = (await read('text/html')).headers.get('content-security-policy');
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self' 'sha256-[\w+/]{43}=';/);
});

test.each(['*/*', 'application/json', ''])(
  'returns the JSON of an unknown path to clients that accept "%s"',
  async (accept) => {
    const response = await read(accept);
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { code: 'not_found', message: 'There is no such path.' } },
    ]);
  },
);

test('names no agent unless the process sets some, and escapes their texts', async () => {
  expect(await (await read('text/html')).text()).not.toContain('Agents</h2>');
  const page = api.app.get(StartPage);
  page.agents = [{ id: '01A', name: '<img src=x onerror=alert(1)>', description: 'First "sentence". Second.' }];
  const html = await (await read('text/html')).text();
  page.agents = [];
  expect(html).toContain('<b>&lt;img src=x onerror=alert(1)&gt;</b>: First &quot;sentence&quot;<br>');
});

test('HEAD has no body', async () => {
  const response = await read('text/html', 'HEAD');
  expect([response.status, await response.text()]).toEqual([200, '']);
});
