import { SpoolError } from './errors.ts';
import { hurry, refusal, ScriptedService, useFastTime, type Scripted } from './service.testing.ts';

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

test('a service that stays away is an error after 8 attempts, which keeps the time to wait', async () => {
  const service = new ScriptedService(() => refusal(503, 'internal_error', { 'retry-after': '40' }));
  const failed = hurry(service.client().thread('T').get());
  await expect(failed).rejects.toMatchObject({ code: 'internal_error', status: 503, retryAfter: 40 });
  expect(service.asked).toHaveLength(8);
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
  ['a base URL without a scheme', { token: 't', baseUrl: 'spool.test' }, /must start with http/],
])('%s is refused at once', (_, options, message) => {
  const service = new ScriptedService(() => ({}));
  expect(() => service.client(options)).toThrow(message);
});
