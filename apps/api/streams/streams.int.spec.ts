import { connect } from 'node:net';
import { request } from 'node:http';
import { once } from 'node:events';
import { LIVE_BUS, type LiveBus } from '#live';
import { eventually } from '#testing';
import { StreamsUnderTest, type TestStream } from './streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL, LISTEN/NOTIFY, access checks. The Runs' events are appended by commands, without a worker.

const KEEPALIVE_MS = 300;

let api: StreamsUnderTest;
beforeAll(async () => {
  api = await StreamsUnderTest.start({ STREAM_KEEPALIVE_MS: KEEPALIVE_MS });
});
afterEach(() => api.release());
afterAll(() => api.stop());

async function listEvents(threadId: string, query = ''): Promise<{ events: { id: string }[] }> {
  const headers = { authorization: `Bearer ${api.token}` };
  const response = await fetch(`${api.url}/threads/${threadId}/events${query}`, { headers });
  return (await response.json()) as { events: { id: string }[] };
}

/** Creates a Thread with an active Run and this many entries in its log. */
async function busyThread(entries = 8): Promise<{ threadId: string; runId: string; log: string[] }> {
  const threadId = await api.newThread();
  const runId = await api.startRun(threadId);
  const missing = entries - (await api.log(threadId)).length;
  if (missing > 0) await api.record(threadId, runId, ...Array.from({ length: missing }, (_, i) => `delta ${i}`));
  return { threadId, runId, log: await api.log(threadId) };
}

describe('the frames of a stream', () => {
  it('are byte for byte as docs/spec/decisions.md decides', async () => {
    const { threadId, runId, log } = await busyThread();
    await api.record(threadId, runId, 'line\nbreaks\r\n\u2028 and 😀');
    const stream = await api.openStream(threadId);
    expect([stream.status, stream.response.httpVersion]).toEqual([200, '1.1']);
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    await stream.untilHas(log.length + 1);
    const { events } = await listEvents(threadId);
    const [head = ''] = /^: connected\nretry: \d{4}\n/.exec(stream.text) ?? [];
    const frames = stream.text.slice(head.length).replaceAll(': keepalive\n', '');
    expect(head).not.toBe('');
    expect(stream.retryMs).toBeGreaterThanOrEqual(1_000);
    expect(stream.retryMs).toBeLessThanOrEqual(3_000);
    const framed = events.map((entry) => `event: thread.event\nid: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`);
    expect(frames).toBe(framed.join(''));
  });
});

describe('a new stream', () => {
  it.each([
    ['the last 3 entries for limit=3', '?limit=3', 3],
    ['no past entry for limit=0', '?limit=0', 0],
  ])('delivers %s, then new ones, and counts as one request', async (_, query, past) => {
    const { threadId, runId, log } = await busyThread();
    const stream = await api.openStream(threadId, query);
    await stream.untilHas(past);
    await api.record(threadId, runId, 'new', 'and newer');
    await stream.untilHas(past + 2);
    expect(stream.ids).toEqual((await api.log(threadId)).slice(log.length - past));
    const left = ({ response }: TestStream) => Number(response.headers['ratelimit-remaining']);
    expect(left(await api.openStream(threadId))).toBe(left(stream) - 1);
  });

  it('treats an empty Last-Event-ID as none', async () => {
    const { threadId, log } = await busyThread();
    const stream = await api.openStream(threadId, '?limit=2', { headers: { 'Last-Event-ID': '' } });
    await stream.untilHas(2);
    expect(stream.ids).toEqual(log.slice(-2));
  });
});

it('a commit of the same process wakes a stream without the poll', async () => {
  const { threadId, runId, log } = await busyThread();
  const stream = await api.openStream(threadId);
  await stream.untilHas(log.length);
  const wakes: string[] = [];
  const ignore = api.app.get<LiveBus>(LIVE_BUS).onWake((woken) => wakes.push(woken));
  await api.record(threadId, runId, 'new');
  expect(wakes).toEqual([threadId]);
  ignore();
  await stream.untilHas(log.length + 1);
});

describe('a stream with until=idle', () => {
  const LATER = '7ZZZZZZZZZZZZZZZZZZZZZZZZZ';
  const resume = (threadId: string, id: string) =>
    api.openStream(threadId, '?until=idle', { headers: { 'Last-Event-ID': id } });

  describe('returns 204', () => {
    let threadId: string;
    let last: string;
    beforeAll(async () => {
      const { runId, ...thread } = await busyThread();
      await api.complete(thread.threadId, runId);
      ({ threadId } = thread);
      last = (await api.log(threadId)).at(-1)!;
    });

    const answerTo = async (opening: Promise<TestStream>) => {
      const stream = await opening;
      await stream.untilClosed();
      return [stream.status, stream.text, stream.last?.event];
    };
    const AT_REST = [204, '', undefined];

    it('for the id of the last entry, in the header or `after`, and opens no stream', async () => {
      const stream = await resume(threadId, last.toLowerCase());
      await stream.untilClosed();
      expect(stream.response.headers).toMatchObject({ 'cache-control': 'no-store, no-transform' });
      expect(stream.response.headers['content-type']).toBeUndefined();
      expect(stream.status).toBe(204);
      expect(await answerTo(api.openStream(threadId, `?until=idle&after=${last}`))).toEqual(AT_REST);
      // The header is the newer one.
      const headers = { 'Last-Event-ID': last };
      expect(await answerTo(api.openStream(threadId, `?until=idle&after=${LATER}`, { headers }))).toEqual(AT_REST);
      const head = await fetch(`${api.url}/threads/${threadId}/events/stream?until=idle&after=${last}`, {
        method: 'HEAD',
        headers: { authorization: `Bearer ${api.token}` },
      });
      expect(head.status).toBe(204);
    });

    it('for a Thread that was terminated', async () => {
      const { threadId: ended } = await busyThread();
      await api.happen(ended, { type: 'terminate_thread' });
      expect(await answerTo(resume(ended, (await api.log(ended)).at(-1)!))).toEqual(AT_REST);
    });

    it('only with until=idle', async () => {
      const stream = await api.openStream(threadId, `?after=${last}`);
      await eventually(() => stream.comments.includes('keepalive'), { what: 'the stream waits' });
      expect(stream.status).toBe(200);
    });

    it('not for another id or none', async () => {
      const log = await api.log(threadId);
      for (const [id, left] of [
        [log.at(-2)!, 1],
        [LATER, 0],
        ['', log.length],
      ] as const) {
        const stream = await resume(threadId, id);
        await stream.untilClosed();
        expect([stream.status, stream.ids.length, stream.last?.event]).toEqual([200, left, 'thread.idle']);
      }
    });
  });
});

describe('a slow reader', () => {
  it('that takes nothing is ended and can resume by id, and other readers are not affected', async () => {
    const { threadId, runId, log } = await busyThread();
    const [slow, fast] = [await api.openStream(threadId), await api.openStream(threadId)];
    await Promise.all([slow, fast].map((stream) => stream.untilHas(log.length)));
    slow.response.pause();
    // More than the buffers of both sockets hold.
    const text = 'x'.repeat(100_000);
    for (let i = 0; i < 120; i++) await api.record(threadId, runId, text);
    await fast.untilHas(log.length + 120);
    expect(fast.ids).toEqual(await api.log(threadId));
    expect(slow.ids.length).toBeLessThan(fast.ids.length);
    await eventually(() => api.readers === 1, { what: 'the slow reader is ended' });
    slow.response.resume();
    await slow.untilClosed();
    expect(slow.ids).toEqual(fast.ids.slice(0, slow.ids.length));
    expect(fast.isClosed).toBe(false);
    const resumed = await api.openStream(threadId, '', { headers: { 'Last-Event-ID': slow.ids.at(-1)! } });
    await resumed.untilHas(fast.ids.length - slow.ids.length);
    expect([...slow.ids, ...resumed.ids]).toEqual(fast.ids);
  });

  it('is not ended while it takes some bytes', async () => {
    const { threadId, runId, log } = await busyThread();
    const slow = await api.openStream(threadId);
    await slow.untilHas(log.length);
    const text = 'x'.repeat(100_000);
    for (let i = 0; i < 80; i++) await api.record(threadId, runId, text);
    // A pause at each chunk keeps it behind all the time.
    slow.response.on('data', () => {
      slow.response.pause();
      setTimeout(() => slow.response.resume(), 2);
    });
    for (let i = 0; i < 80; i++) await api.record(threadId, runId, text);
    await slow.untilHas(log.length + 160, 20_000);
    expect(slow.ids).toEqual(await api.log(threadId));
    expect(slow.isClosed).toBe(false);
  });
});

describe('a client that disconnects', () => {
  it('leaves no connection, stream or reader behind, before or after its first bytes', async () => {
    const { threadId } = await busyThread(200);
    const url = new URL(`${api.url}/threads/${threadId}/events/stream`);
    const leave = async (i: number): Promise<void> => {
      const socket = connect(Number(url.port), url.hostname);
      await once(socket, 'connect');
      socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\n\r\n`);
      if (i % 2 === 0) await once(socket, 'data');
      socket.resetAndDestroy();
    };
    const connections = (): Promise<number> =>
      new Promise((resolve) => api.app.getHttpServer().getConnections((_: unknown, count: number) => resolve(count)));
    const before = await connections();
    await Promise.all(Array.from({ length: 60 }, (_, i) => leave(i)));
    await eventually(async () => (await connections()) <= before, { what: 'all connections are gone' });
    await eventually(() => api.openStreams === 0 && api.readers === 0, { what: 'all streams are gone' });
  });
});

describe('shutdown', () => {
  const endsStreams = async (): Promise<void> => {
    const leaving = await StreamsUnderTest.start();
    const threadId = await leaving.newThread();
    const streams = await Promise.all(Array.from({ length: 20 }, () => leaving.openStream(threadId)));
    await eventually(() => streams.every(({ text }) => text !== ''), { what: 'all have started' });
    await leaving.stop();
    await Promise.all(streams.map((stream) => stream.untilClosed()));
    expect(streams.every(({ isComplete, last }) => isComplete && last === null)).toBe(true);
    const again = request(leaving.url, { agent: false }).end();
    const [error] = (await once(again, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  };
  it('ends all streams completely, and accepts no connection afterwards', endsStreams, 30_000);
});
