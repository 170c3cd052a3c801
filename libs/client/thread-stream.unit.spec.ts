import fc from 'fast-check';
import { toExtendedLogEntry } from '#domain';
import { anyChances, RandomLog } from '../domain/random-log.testing.ts';
import { randomRuns } from '../domain/random.testing.ts';
import { reduceThread, type SpoolError, type ThreadMessages } from './index.ts';
import {
  endless,
  hurry,
  refusal,
  ScriptedService,
  STREAM,
  useFastTime,
  type Asked,
  type Scripted,
} from './service.testing.ts';
import type { StreamStatus, ThreadStream } from './thread-stream.ts';
import type { LogEntry } from './types.ts';

const isLong = process.env['SPOOL_LONG'] === '1';
const LOGS = isLong ? 10_000 : 100;
const IDLE = 'event: thread.idle\ndata: {}\n\n';

beforeEach(useFastTime);
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

const frame = (entry: { id: string }): string =>
  `event: thread.event\nid: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`;
const idOf = (n: number): string => `01J${String(n).padStart(23, '0')}`;
const entryOf = (n: number) => ({ id: idOf(n), type: 'agent.message.delta', content: `ü${n}` });

/** Returns a body of these pieces. It ends or breaks after them, or stays open. */
function bodyOf(pieces: Uint8Array[], end: 'ends' | 'breaks' | 'stays open', signal?: AbortSignal | null) {
  const rest = [...pieces];
  return new ReadableStream<Uint8Array>({
    start: (controller) => signal?.addEventListener('abort', () => controller.error(signal.reason)),
    pull(controller) {
      const piece = rest.shift();
      if (piece !== undefined) controller.enqueue(piece);
      else if (end === 'ends') controller.close();
      else if (end === 'breaks') controller.error(new TypeError('terminated'));
    },
  });
}

const bytes = (text: string): Uint8Array[] => [new TextEncoder().encode(text)];

/** Returns an open stream of entries, as the service sends it. */
function open(
  entries: { id: string }[],
  end: 'ends' | 'breaks' | 'stays open',
  { signal }: Asked,
  headers: Record<string, string> = {},
): Scripted {
  const text = `: connected\nretry: 1000\n${entries.map(frame).join('')}`;
  return { headers: { ...STREAM, ...headers }, body: bodyOf(bytes(text), end, signal) };
}

async function readAll(stream: ThreadStream): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of stream) entries.push(entry);
  return entries;
}

/** What happens to one connection: nothing comes, it is refused, or it ends after a share of the bytes, in pieces of a size. */
const anyConnection = fc.record({
  kind: fc.constantFrom('lost', 'busy', 'html', 'ends', 'breaks', 'ends', 'breaks'),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  size: fc.integer({ min: 1, max: 700 }),
});

test(
  'nothing is lost or repeated, wherever streams of random logs are cut',
  async () => {
    const holds = fc.asyncProperty(anyChances, fc.array(anyConnection, { maxLength: 6 }), async (chances, cuts) => {
      const log = new RandomLog(chances).events.flatMap((event) => toExtendedLogEntry(event) ?? []);
      const connections = [...cuts];
      const service = new ScriptedService(({ headers }) => {
        const after = headers.get('last-event-id')!;
        const rest = log.filter(({ id }) => id > after);
        const all = new TextEncoder().encode(`: connected\nretry: 1000\n${rest.map(frame).join('')}${IDLE}`);
        const { kind, share, size } = connections.shift() ?? { kind: 'ends', share: 1, size: all.length };
        if (kind === 'lost') throw new TypeError('fetch failed');
        if (kind === 'busy') return refusal(503, 'internal_error', { 'retry-after': '2' });
        if (kind === 'html') return { headers: { 'content-type': 'text/html' }, body: '<p>Sign in</p>' };
        const sent = all.subarray(0, Math.round(share * all.length));
        const pieces = Array.from({ length: Math.ceil(sent.length / size) }, (_, i) =>
          sent.subarray(i * size, (i + 1) * size),
        );
        return { headers: STREAM, body: bodyOf(pieces, kind) };
      });
      let state: ThreadMessages = { messages: [] };
      const seen: string[] = [];
      const stream = service.client().thread('T').stream({ until: 'idle' });
      const read = async (): Promise<void> => {
        for await (const entry of stream) {
          seen.push(entry.id);
          state = reduceThread([entry], state);
        }
      };
      await hurry(read());
      expect(seen).toEqual(log.map(({ id }) => id));
      expect(state).toEqual(reduceThread(log));
    });
    await fc.assert(holds, { ...randomRuns(LOGS), endOnFailure: true });
  },
  15 * 60_000,
);

test('the status is live once the past has been read, and says when the stream reconnects', async () => {
  const statuses: StreamStatus[] = [];
  const newest = { 'spool-last-event-id': idOf(2) };
  const service = new ScriptedService((asked, n) => {
    if (n === 1) return open([entryOf(1), entryOf(2), entryOf(3)], 'breaks', asked, newest);
    if (n === 2) throw new TypeError('fetch failed');
    if (n === 3) return open([], 'ends', asked, newest);
    return { status: 204 };
  });
  const stream = service
    .client()
    .thread('T')
    .stream({ until: 'idle', onStatus: (status) => statuses.push(status) });
  expect(stream.status).toBe('catching-up');
  const seen: [string, StreamStatus][] = [];
  const read = async (): Promise<void> => {
    for await (const { id } of stream) seen.push([id, stream.status]);
  };
  await hurry(read());
  expect(seen.map(([id, status]) => [Number(id.slice(3)), status])).toEqual([
    [1, 'catching-up'],
    [2, 'catching-up'],
    [3, 'live'],
  ]);
  expect(statuses).toEqual(['live', 'reconnecting', 'reconnecting', 'live', 'reconnecting', 'ended']);
  expect(service.asked.map(({ headers }) => headers.get('last-event-id'))).toEqual([
    '0'.repeat(26),
    ...[idOf(3), idOf(3), idOf(3)],
  ]);
});

test('a connection that is silent for 45 s is replaced', async () => {
  const service = new ScriptedService((asked, n) =>
    n === 1 ? open([entryOf(1)], 'stays open', asked) : { status: 204 },
  );
  const ended = readAll(service.client().thread('T').stream({ until: 'idle' }));
  await jest.advanceTimersByTimeAsync(44_000);
  expect(service.asked).toHaveLength(1);
  expect(await hurry(ended)).toHaveLength(1);
  expect(service.asked.map(({ signal }) => signal?.aborted)).toEqual([true, true]);
});

test.each([
  ['at once, so the pauses grow', 0, 4],
  ['after a while, so the pauses stay short', 10_000, 6],
])('a connection without entries ends %s', async (_, lastsMs, expected) => {
  jest.spyOn(Math, 'random').mockReturnValue(1); // The longest pauses: 0.5 s, 1 s, 2 s, 4 s.
  const service = new ScriptedService((asked) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const timer = setTimeout(() => controller.close(), lastsMs);
        asked.signal!.addEventListener('abort', () => {
          clearTimeout(timer);
          controller.error(asked.signal!.reason);
        });
      },
    });
    return { headers: STREAM, body };
  });
  const stream = service.client().thread('T').stream();
  const read = readAll(stream);
  await jest.advanceTimersByTimeAsync(5 * lastsMs + 5_000);
  expect(service.asked).toHaveLength(expected);
  stream.close();
  await read;
});

test.each([
  ['404', refusal(404, 'not_found', { 'spool-error-reason': 'thread_not_found' }), ['not_found', 'thread_not_found']],
  ['403', refusal(403, 'forbidden'), ['forbidden', undefined]],
])('a %s is final', async (_, answer, [code, reason]) => {
  const service = new ScriptedService(() => answer);
  const stream = service.client().thread('T').stream();
  await expect(readAll(stream)).rejects.toMatchObject({ name: 'SpoolError', code, reason });
  expect([stream.status, service.asked.length]).toEqual(['ended', 1]);
});

test('a getToken that says that the user must sign in again is final', async () => {
  const getToken = () => Promise.reject(Object.assign(new Error('Signed out.'), { status: 401 }));
  const stream = new ScriptedService(() => ({})).client({ getToken }).thread('T').stream();
  await expect(readAll(stream)).rejects.toMatchObject({ code: 'token_unavailable', status: 401 });
  expect([stream.status, stream.error?.status]).toEqual(['ended', 401]);
});

test('thread.error is final, except that of an expired token that can be renewed', async () => {
  const error = { code: 'unauthenticated', message: 'Expired.', reason: 'token_expired' };
  const service = new ScriptedService((asked, n) => {
    const frames = `${frame(entryOf(n))}event: thread.error\ndata: ${JSON.stringify({ error })}\n\n`;
    return n === 1 || n === 4 ? { headers: STREAM, body: frames } : refusal(401, 'unauthenticated');
  });
  const tokens = ['one', 'two', 'three'];
  const stream = service
    .client({ getToken: () => tokens.shift()! })
    .thread('T')
    .stream();
  const read = hurry(readAll(stream));
  await expect(read).rejects.toMatchObject({ code: 'unauthenticated' });
  expect(service.asked.map(({ headers }) => headers.get('authorization'))).toEqual([
    'Bearer one',
    'Bearer one',
    'Bearer two',
  ]);
  const fixed = new ScriptedService((asked, n) => {
    const frames = `${frame(entryOf(n))}event: thread.error\ndata: ${JSON.stringify({ error })}\n\n`;
    return { headers: STREAM, body: frames };
  });
  await expect(hurry(readAll(fixed.client().thread('T').stream()))).rejects.toMatchObject({ reason: 'token_expired' });
  expect(fixed.asked).toHaveLength(1);
});

test('a getToken that fails is asked again, and the stream says why it waits now', async () => {
  let failures = 3;
  const getToken = (): string => {
    if (failures-- > 0) throw new Error('signed out');
    return 'token';
  };
  const service = new ScriptedService((asked, n) => (n === 1 ? open([], 'ends', asked) : { status: 204 }));
  const told: [StreamStatus, string | undefined][] = [];
  const onStatus = (status: StreamStatus, error: SpoolError | null) => told.push([status, error?.message]);
  const first = service.client().thread('T').stream({ until: 'idle' });
  expect(await hurry(readAll(first))).toEqual([]);
  const stream = service.client({ getToken }).thread('T').stream({ until: 'idle', onStatus });
  const read = readAll(stream);
  await jest.advanceTimersByTimeAsync(1);
  expect([stream.status, stream.error?.code]).toEqual(['reconnecting', 'token_unavailable']);
  expect(await hurry(read)).toEqual([]);
  const waiting: [StreamStatus, string] = ['reconnecting', 'getToken failed: signed out'];
  expect(told).toEqual([waiting, waiting, waiting, ['ended', undefined]]);
});

test('a stream that ends cleanly and cannot connect again says why', async () => {
  const service = new ScriptedService((asked, n) => {
    if (n === 1) return open([], 'ends', asked);
    throw new TypeError('fetch failed');
  });
  const told: [StreamStatus, string | undefined][] = [];
  const stream = service
    .client()
    .thread('T')
    .stream({ onStatus: (status, error) => told.push([status, error?.code]) });
  const read = readAll(stream);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(told.slice(0, 2)).toEqual([
    ['reconnecting', undefined],
    ['reconnecting', 'no_response'],
  ]);
  stream.close();
  await read;
  expect(told.at(-1)).toEqual(['ended', undefined]);
});

test('close ends the loop although getToken does not answer', async () => {
  const service = new ScriptedService(() => ({}));
  const stream = service
    .client({ getToken: () => new Promise<never>(() => undefined) })
    .thread('T')
    .stream();
  const read = readAll(stream);
  await jest.advanceTimersByTimeAsync(1);
  stream.close();
  expect(await read).toEqual([]);
});

test('a refusal whose body never ends is a broken connection', async () => {
  const service = new ScriptedService((asked, n) => (n > 1 ? { status: 204 } : { status: 503, body: endless(asked) }));
  expect(await hurry(readAll(service.client().thread('T').stream({ until: 'idle' })))).toEqual([]);
  expect(service.asked).toHaveLength(2);
});

test('leaving the loop, or close, ends the connection and sends nothing', async () => {
  const service = new ScriptedService((asked) => open([entryOf(1), entryOf(2)], 'stays open', asked));
  const thread = service.client().thread('T');
  for await (const _ of thread.stream()) break;
  const waiting = thread.stream();
  const read = readAll(waiting);
  await jest.advanceTimersByTimeAsync(1);
  waiting.close();
  expect(await read).toHaveLength(2);
  expect([waiting.status, ...service.asked.map(({ method, signal }) => `${method} ${signal?.aborted}`)]).toEqual([
    'ended',
    'GET true',
    'GET true',
  ]);
});

test('a stream after lastEventId begins with the entry that was not handled; the same stream cannot be read again', async () => {
  const service = new ScriptedService((asked) => {
    const after = asked.headers.get('last-event-id')!;
    const rest = [entryOf(1), entryOf(2)].filter(({ id }) => id > after);
    return open(rest, 'stays open', asked);
  });
  const thread = service.client().thread('T');
  const stream = thread.stream();
  for await (const { id } of stream) if (id === idOf(2)) break;
  expect(stream.lastEventId).toBe(idOf(1));
  await expect(readAll(stream)).rejects.toThrow('A stream can be read once');
  for await (const { id } of thread.stream({ after: stream.lastEventId })) {
    expect(id).toBe(idOf(2));
    break;
  }
});
