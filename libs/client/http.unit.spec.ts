import { SpoolError } from './errors.ts';
import { endless, hurry, refusal, ScriptedService, STREAM, useFastTime, type Scripted } from './service.testing.ts';
import type { Progress } from './progress.ts';
import type { Spool } from './spool.ts';

beforeEach(useFastTime);
afterEach(() => void jest.useRealTimers());

const RUN = { events: [{ run: { id: 'R' } }] };

test('a message has one key in all attempts', async () => {
  const HALF = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"events":[')),
    pull: (controller) => controller.error(new TypeError('terminated')),
  });
  const service = new ScriptedService((_, n) => {
    if (n === 1) throw new TypeError('fetch failed');
    if (n === 2) return { body: HALF };
    if (n === 3) return { status: 502, body: '<h1>Bad gateway</h1>' };
    if (n === 4) return refusal(429, 'rate_limited', { 'retry-after': '7' });
    if (n === 5) return refusal(409, 'idempotency_conflict', { 'retry-after': '1' });
    return { body: JSON.stringify(RUN) };
  });
  const run = await hurry(service.client().thread('T').send('Hello'));
  expect(run).toMatchObject({ id: 'R', threadId: 'T' });
  const keys = service.asked.map(({ headers }) => headers.get('idempotency-key'));
  expect([keys.length, new Set(keys).size]).toEqual([6, 1]);
  expect(service.asked.map(({ body }) => JSON.parse(String(body)) as unknown)).toEqual(
    keys.map(() => ({ events: [{ type: 'user_message', text: 'Hello', resources: [] }] })),
  );
});

test.each<[string, Scripted, object]>([
  [
    'a refusal',
    refusal(409, 'idempotency_conflict', { 'spool-error-reason': 'thread_busy', 'x-request-id': 'r1' }),
    { code: 'idempotency_conflict', reason: 'thread_busy', status: 409, requestId: 'r1' },
  ],
  [
    'a late decision',
    {
      status: 409,
      headers: { 'spool-error-reason': 'request_decided' },
      body: '{"error":{"code":"idempotency_conflict","message":"Decided.","decision":"allow_once"}}',
    },
    { reason: 'request_decided', decision: 'allow_once' },
  ],
  ['the HTML of a proxy', { status: 403, body: '<h1>No</h1>' }, { code: 'invalid_response', status: 403 }],
  ['a page instead of JSON', { body: '<h1>Sign in</h1>' }, { code: 'invalid_response', status: 200 }],
])('%s is a typed error, after one request', async (_, answer, expected) => {
  const service = new ScriptedService(() => answer);
  const sent = service.client().thread('T').send('Hello');
  await expect(sent).rejects.toMatchObject({ name: 'SpoolError', ...expected });
  expect(service.asked).toHaveLength(1);
});

test.each<[string, (client: Spool) => Promise<unknown>]>([
  ['thread', (client) => client.agent('A').thread({ userId: 'ada' })],
  ['send of an Agent', (client) => client.agent('A').send('Hello', { userId: 'ada' })],
  ['send', (client) => client.thread('T').send('Hello')],
  ['decide', (client) => client.thread('T').decide('Q', 'allow_once')],
  ['interrupt', (client) => client.thread('T').interrupt()],
  ['retry', (client) => client.thread('T').retry('R')],
  ['upload', (client) => client.files.upload('A', { name: 'x.txt', content: new TextEncoder().encode('x') })],
])('%s has one key in all attempts, and each call has another', async (_, call) => {
  const BODY = JSON.stringify({ ...RUN, thread: { id: 'T' }, run: { id: 'R' }, file: { id: 'F' } });
  const service = new ScriptedService((__, n) => (n % 2 === 1 ? { status: 502 } : { body: BODY }));
  const client = service.client();
  await hurry(call(client));
  await hurry(call(client));
  const keys = service.asked.map(({ headers }) => headers.get('idempotency-key'));
  expect(keys).toEqual([keys[0], keys[0], keys[2], keys[2]]);
  expect(new Set(keys)).toEqual(new Set([expect.stringMatching(/^\w{32}$/), expect.stringMatching(/^\w{32}$/)]));
});

test.each<[string, (client: Spool, id: string) => Promise<unknown>]>([
  ['a Thread', (client, id) => client.thread(id).get()],
  ['a list', (client, id) => client.threads.list({ agentId: id })],
  ['a Run', (client, id) => client.thread('T').run(id).get()],
  ['a file', (client, id) => client.files.download(id)],
  ['a stream', async (client, id) => client.thread(id).stream()],
])('the path of %s has no id that could lead elsewhere', async (_, call) => {
  const service = new ScriptedService(() => ({}));
  for (const id of ['../files/F', 'a?b', '%2e%2e', '', '..']) {
    await expect(call(service.client(), id)).rejects.toThrow(`"${id}" is not an id.`);
  }
  expect(service.asked).toEqual([]);
});

test('an upload ends when onProgress throws, and the other uploads of its message are given up', async () => {
  const service = new ScriptedService(async ({ url, receive, signal }) => {
    if (url.pathname.endsWith('/threads/T')) return { body: '{"thread":{"agent_id":"A"}}' };
    await receive();
    signal!.throwIfAborted();
    return new Promise((__, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error)));
  });
  const thread = service.client().thread('T');
  const files = ['one', 'two'].map((content) => ({ name: `${content}.txt`, content }));
  const seen: Progress[] = [];
  const onProgress = (progress: Progress): void => {
    seen.push(progress);
    if (progress.sentBytes === 6) throw new Error('A bug of the page.');
  };
  await expect(thread.send('Hello', { files, onProgress })).rejects.toThrow('A bug of the page.');
  expect([seen[0], seen.at(-1)]).toEqual([
    { sentBytes: 3, totalBytes: 6 },
    { sentBytes: 6, totalBytes: 6 },
  ]);
  await jest.advanceTimersByTimeAsync(600_000);
  expect(service.asked).toHaveLength(3);
  expect(service.asked.slice(1).map(({ signal }) => signal!.aborted)).toEqual([true, true]);
});

describe('answer', () => {
  const running = { body: JSON.stringify({ run: { id: 'R', status: 'running' } }) };
  const working = () =>
    new ScriptedService((asked) =>
      asked.url.pathname.endsWith('/stream') ? { headers: STREAM, body: endless(asked) } : running,
    );

  test('waits for ever with timeoutMs Infinity, until its signal aborts', async () => {
    const leaving = new AbortController();
    let isSettled = false;
    const answer = working()
      .client()
      .thread('T')
      .run('R')
      .answer({ timeoutMs: Infinity, signal: leaving.signal })
      .finally(() => (isSettled = true));
    await jest.advanceTimersByTimeAsync(600_000);
    expect(isSettled).toBe(false);
    leaving.abort(new Error('The caller left.'));
    await expect(answer).rejects.toThrow('The caller left.');
  });

  test('ends in time while getToken does not answer', async () => {
    const getToken = () => new Promise<never>(() => undefined);
    const answer = working().client({ getToken }).thread('T').run('R').answer({ timeoutMs: 1_000 });
    const checked = expect(answer).rejects.toMatchObject({ code: 'timeout' });
    await jest.advanceTimersByTimeAsync(1_000);
    await checked;
  });
});

test('a Retry-After of a month is a pause of 5 minutes', async () => {
  const month = { 'retry-after': '2592000' };
  const service = new ScriptedService((_, n) => (n === 1 ? refusal(503, 'internal_error', month) : {}));
  const read = service.client().thread('T').get();
  await jest.advanceTimersByTimeAsync(299_000);
  expect(service.asked).toHaveLength(1);
  await hurry(read);
  expect(service.asked).toHaveLength(2);
});

test('a service that stays away is an error after 8 attempts, which keeps the time to wait', async () => {
  const service = new ScriptedService(() => refusal(503, 'internal_error', { 'retry-after': '40' }));
  const failed = hurry(service.client().thread('T').get());
  await expect(failed).rejects.toMatchObject({ code: 'internal_error', status: 503, retryAfter: 40 });
  expect(service.asked).toHaveLength(8);
});

test('a response that never ends is asked for again after 60 s', async () => {
  const service = new ScriptedService((asked, n) => ({ body: n > 1 ? '{}' : endless(asked, '{"thread":') }));
  await hurry(service.client().thread('T').get());
  expect(service.asked).toHaveLength(2);
});

test('a response that never comes, and a token that never comes, are given up and asked for again', async () => {
  const never = new Promise<never>(() => undefined);
  const getToken = jest.fn<Promise<string>, []>().mockReturnValueOnce(never).mockResolvedValue('token');
  const service = new ScriptedService(({ signal }, n) =>
    n > 1 ? {} : new Promise((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error))),
  );
  await hurry(service.client({ getToken }).thread('T').get());
  expect([service.asked.length, getToken.mock.calls.length]).toEqual([2, 2]);
});

test.each([
  ['a Thread', (client: Spool) => client.thread('T').delete()],
  ['a file', (client: Spool) => client.files.delete('F')],
])('%s is deleted although the response was lost', async (_, call) => {
  const service = new ScriptedService((__, n) => {
    if (n === 1) throw new TypeError('fetch failed');
    return refusal(404, 'not_found');
  });
  await hurry(call(service.client()));
  expect(service.asked.map(({ method }) => method)).toEqual(['DELETE', 'DELETE']);
});

const failing = (...statuses: (number | undefined)[]) => {
  const errors = statuses.map((status) => Object.assign(new Error('No token.'), { status }));
  return jest.fn(() => (errors.length > 0 ? Promise.reject(errors.shift()!) : Promise.resolve('token')));
};

test.each([400, 401, 403, 404, 409, 422])('a getToken error with status %i is final', async (status) => {
  const getToken = failing(status);
  const sent = new ScriptedService(() => ({})).client({ getToken }).thread('T').send('Hello');
  await expect(sent).rejects.toMatchObject({ code: 'token_unavailable', status, isRetryable: false });
  expect(getToken).toHaveBeenCalledTimes(1);
});

test('getToken is called again after 408, 429, 5xx and an error without a status', async () => {
  const getToken = failing(408, 429, 500, 503, undefined);
  const service = new ScriptedService(() => ({}));
  await hurry(service.client({ getToken }).thread('T').get());
  expect([getToken.mock.calls.length, service.asked.length]).toEqual([6, 1]);
});

describe('a browser token', () => {
  const claims = (lifetime: number): string => btoa(JSON.stringify({ iat: 1_000, exp: 1_000 + lifetime }));
  const tokens = (...made: string[]) => {
    const getToken = jest.fn(async () => ({ token: made.shift()! }));
    return getToken;
  };
  const OK: Scripted = { body: '{}' };

  test('is asked for once, and again when most of its time is over, whatever the time of day is', async () => {
    const getToken = tokens(`spool_bt_a.${claims(100)}.x`, 'two');
    const service = new ScriptedService(() => OK);
    const thread = service.client({ getToken }).thread('T');
    await Promise.all([thread.get(), thread.get()]);
    jest.setSystemTime(0);
    await jest.advanceTimersByTimeAsync(79_000);
    await thread.get();
    expect(getToken).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(2_000);
    await Promise.all([thread.get(), thread.get()]);
    expect(getToken).toHaveBeenCalledTimes(2);
    expect(service.asked.at(-1)!.headers.get('authorization')).toBe('Bearer two');
  });

  test('is renewed once after a 401, and a second 401 is final', async () => {
    const getToken = tokens('one', 'two', 'three');
    const service = new ScriptedService((_, n) => (n === 1 || n > 2 ? refusal(401, 'unauthenticated') : OK));
    const thread = service.client({ getToken }).thread('T');
    await thread.get();
    await expect(thread.get()).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(service.asked.map(({ headers }) => headers.get('authorization'))).toEqual([
      ...['Bearer one', 'Bearer two', 'Bearer two', 'Bearer three'],
    ]);
  });

  test('of a server is not renewed', async () => {
    const service = new ScriptedService(() => refusal(401, 'unauthenticated'));
    await expect(service.client().thread('T').get()).rejects.toBeInstanceOf(SpoolError);
    expect(service.asked).toHaveLength(1);
  });
});

test.each<[string, object, RegExp]>([
  ['no token', {}, /either token or getToken/],
  ['two tokens', { token: 't', getToken: () => 't' }, /either token or getToken/],
  ['an empty token', { token: '' }, /token is empty/],
  ['a base URL without a scheme', { token: 't', baseUrl: 'spool.test' }, /must start with http/],
])('%s is refused at once', (_, options, message) => {
  const service = new ScriptedService(() => ({}));
  expect(() => service.client(options)).toThrow(message);
});
