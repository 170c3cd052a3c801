import { connect, createServer, type AddressInfo } from 'node:net';
import { createTestDatabase, eventually, spawnNode, type SpawnedNode, type TestDatabase } from '#testing';

/** The built process, started as in production. */
let database: TestDatabase;
let api: SpawnedNode | null = null;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await api?.kill('SIGKILL');
  api = null;
});
afterAll(() => database.drop());

const start = (env: Record<string, string>) => (api = spawnNode('dist/apps/api/main.js', [], env));

async function startReady(env: Record<string, string> = {}): Promise<{ process: SpawnedNode; url: string }> {
  const process = start({ DATABASE_URL: database.url, PORT: '0', ...env });
  const [line] = await process.waitForLine(/^\{.*"msg":"api ready".*$/m);
  return { process, url: (JSON.parse(line) as { url: string }).url };
}

it.each([
  ['DATABASE_URL', {}],
  ['PORT', { DATABASE_URL: 'postgres://localhost', PORT: 'http' }],
  ['BROWSER_TOKEN_KEYS', { DATABASE_URL: 'postgres://localhost', CHAT_PAGE: 'on' }],
])('exits with one line if %s is invalid', async (name, env) => {
  const process = start(env);
  expect(await process.exited).toEqual({ code: 1, signal: null });
  expect(process.output()).toMatch(new RegExp(`^Wrong configuration: ${name}: .+\n$`));
});

it('exits with one line if the port is taken', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  try {
    const process = start({ DATABASE_URL: database.url, PORT: String(port) });
    expect(await process.exited).toEqual({ code: 1, signal: null });
    expect(process.output().trimEnd()).toBe(`Port ${port} of 127.0.0.1 is taken; set PORT to another one.`);
  } finally {
    other.close();
  }
});

it('starts although Redis rejects the password, and does not log the password', async () => {
  const redis = createServer((socket) => {
    socket.on('error', () => undefined); // The API closes the connection.
    socket.on('data', () => socket.write('-WRONGPASS invalid username-password pair\r\n'));
  });
  await new Promise<void>((resolve) => redis.listen(0, '127.0.0.1', resolve));
  const { port } = redis.address() as AddressInfo;
  try {
    const { process } = await startReady({ QUEUE_URL: `redis://:geheim@127.0.0.1:${port}` });
    await process.waitForLine(/WRONGPASS.*"msg":"queue unavailable/);
    await process.kill('SIGTERM');
    expect(process.output()).not.toContain('geheim');
  } finally {
    redis.close();
  }
});

it('logs an unhandled rejection as its last line, and exits', async () => {
  const failing = `process.on('SIGUSR2', () => void Promise.reject(new Error('uncaught error')));`;
  const { process } = await startReady({
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(failing)}`,
  });
  expect(await process.kill('SIGUSR2')).toEqual({ code: 1, signal: null });
  const last = process.output().trimEnd().split('\n').at(-1)!;
  expect(JSON.parse(last)).toMatchObject({
    level: 'fatal',
    msg: 'unhandledRejection',
    err: { message: 'uncaught error' },
  });
});

it('logs JSON, and listens at the logged URL', async () => {
  const { process, url } = await startReady({ PUBLIC_BASE_URL: 'https://spool.example' });
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/v1$/);
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
  await process.waitForLine(/"msg":"request"/);
  for (const line of process.output().trimEnd().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow();
});

it('finishes requests in progress at SIGTERM, accepts no new ones, and exits', async () => {
  const { process, url } = await startReady();
  const { port } = new URL(url);
  const body = '{}';
  const head = `POST /api/v1/agents/x/threads HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
  const slow = connect(Number(port), '127.0.0.1');
  let answer = '';
  slow.on('error', () => undefined); // An empty answer fails the test below.
  slow.setEncoding('utf8').on('data', (data: string) => {
    answer += data;
  });
  const closed = new Promise((resolve) => slow.once('close', resolve));
  slow.write(`${head}Content-Length: ${body.length}\r\n`);
  // The server reads bytes in the order of arrival. When it answers this request, it has read those above.
  await fetch(url);
  const exit = process.kill('SIGTERM');
  await process.waitForLine(/"msg":"stopping"/);
  await eventually(
    () =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    { what: 'new connections are refused' },
  );
  slow.write(`\r\n${body}`);
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(await exit).toEqual({ code: 0, signal: null });
});

it('serves for the drain time, not ready and without keep-alive, and then closes', async () => {
  const { process, url } = await startReady({ SHUTDOWN_DRAIN_MS: '2000' });
  const ready = () => fetch(`${new URL(url).origin}/health/ready`);
  const before = await ready();
  expect([before.status, before.headers.get('connection')]).toEqual([200, 'keep-alive']);
  const toldAt = performance.now();
  const exit = process.kill('SIGTERM');
  const draining = await eventually(async () => ((await ready()).status === 503 ? ready() : null), {
    what: 'it is not ready any more',
  });
  expect(await draining.json()).toMatchObject({ status: 'stopping', database: 'ok' });
  for (const answer of await Promise.all(
    ['/openapi.json', '/threads/x', '/nowhere'].map((path) => fetch(url + path)),
  )) {
    expect(answer.headers.get('connection')).toBe('close');
    expect(answer.status).toBeLessThan(500);
  }
  expect(await exit).toEqual({ code: 0, signal: null });
  expect(performance.now() - toldAt).toBeGreaterThanOrEqual(2_000);
});
