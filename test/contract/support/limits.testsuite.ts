import { randomBytes } from 'node:crypto';
import { eventually } from '#testing';
import type { Client, EventStream } from './client.ts';
import { RawRequest } from './raw-request.ts';
import { interrupt, message, refusal, UNKNOWN, userMessage, type World } from './world.ts';

const MEBIBYTE = 1024 * 1024;

/** Every limit, and one past it (docs/spec/agent-threads-api.md#limits, docs/spec/decisions.md#limits). */
export function describeLimits(world: World): void {
  describe('limits', () => {
    const send = (threadId: string, ...events: object[]) => world.send(threadId, ...events);
    const tooMuch = (status: number) => expect([400, 413, 429]).toContain(status);

    test('events in a batch: 1..100', async () => {
      const { thread, run } = await world.endedThread();
      const batch = (count: number) => Array.from({ length: count }, () => interrupt({ runId: run.id }));
      expect((await send(thread.id, ...batch(1))).status).toBe(200);
      const all = await send(thread.id, ...batch(100));
      expect([all.status, all.json.events.length]).toEqual([200, 100]);
      for (const count of [0, 101])
        expect(refusal(await send(thread.id, ...batch(count)))).toEqual([400, 'invalid_request']);
    });

    test('message text: 1..128,000 Unicode characters', async () => {
      for (const text of ['a', 'é'.repeat(128_000), '😀'.repeat(128_000)]) {
        const { id } = await world.newThread();
        expect((await send(id, userMessage(text), interrupt())).status).toBe(200);
        expect((await world.log(id))[0]!.content).toBe(text);
      }
      const { id } = await world.newThread();
      for (const text of ['', 'a'.repeat(128_001), '😀'.repeat(128_000) + 'a']) {
        expect(refusal(await send(id, userMessage(text)))).toEqual([400, 'invalid_request']);
      }
    });

    test('requestId: at most 255 Unicode characters', async () => {
      const { id } = await world.newThread();
      const requestId = '😀'.repeat(255);
      const sent = await send(id, userMessage('a', { requestId }), interrupt());
      expect(sent.json.events[0]!.requestId).toBe(requestId);
      expect(refusal(await send(id, userMessage('a', { requestId: `${requestId}a` })))).toEqual([
        400,
        'invalid_request',
      ]);
    });

    test.each([
      ['NUL', 'a\0b'],
      ['a lone high surrogate', 'a\uD800'],
      ['a lone low surrogate', '\uDC00b'],
    ])('%s in text is 400', async (_, text) => {
      const { id } = await world.newThread();
      const replies = [
        await world.client.post(`/agents/${world.agentId}/threads`, { userId: text }),
        await world.client.post(`/agents/${world.agentId}/threads`, { userId: 'u', input: message(text) }),
        await send(id, userMessage(text)),
        await send(id, userMessage('a', { requestId: text })),
        await world.client.post(`/threads/${id}/files`, { name: text, contentType: 'text/plain', contentBase64: '' }),
      ];
      for (const reply of replies) expect(refusal(reply)).toEqual([400, 'invalid_request']);
    });

    test('JSON body: 8 MiB, one byte more is 413', async () => {
      const { id } = await world.newThread();
      const start = '{"events":[{"type":"user_interrupt"';
      const body = `${start}${' '.repeat(8 * MEBIBYTE - start.length - 3)}}]}`;
      const headers = { 'content-type': 'application/json' };
      const path = `/threads/${id}/events`;
      const whole = await world.client.post(path, undefined, { body, headers });
      expect([body.length, ...refusal(whole)]).toEqual([8 * MEBIBYTE, 409, 'idempotency_conflict']);
      // By its length, or where it comes without one.
      for (const more of [{ 'content-length': String(8 * MEBIBYTE + 1) }, { 'transfer-encoding': 'chunked' }]) {
        const request = new RawRequest(world.client, 'POST', path, { ...headers, ...more });
        await request.write('content-length' in more ? start : `${body} `);
        expect(refusal(await request.reply)).toEqual([413, 'invalid_request']);
        request.cut();
      }
    });

    test('inline base64: 5 MiB decoded, one byte more is refused', async () => {
      const { id } = await world.newThread();
      const bytes = randomBytes(5 * MEBIBYTE);
      const { status, json } = await world.attach(id, 'big', bytes);
      expect([status, json.file.size]).toEqual([201, 5 * MEBIBYTE]);
      expect((await world.client.get(`/files/${json.file.id}/content`)).bytes.equals(bytes)).toBe(true);
      const more = await world.attach(id, 'bigger', Buffer.concat([bytes, Buffer.from('x')]));
      tooMuch(more.status);
      expect([more.code, (await world.files(id)).length]).toEqual(['invalid_request', 1]);
    });

    test('files a Thread: 100, whichever way they come', async () => {
      const { id } = await world.newThread();
      // A few at a time: of a hundred at once, on one Thread, the last may be told to come again.
      for (let i = 0; i < 99; i += 9) {
        const nine = Array.from({ length: 9 }, (_, j) => world.attach(id, `${i + j}`, 'x'));
        expect((await Promise.all(nine)).map(({ status }) => status)).toEqual(Array(9).fill(201));
      }
      const [one, two] = [await world.draft('one'), await world.draft('two')];
      const path = `/threads/${id}/files`;
      tooMuch((await send(id, userMessage('a', { resources: [one.resource, two.resource] }))).status);
      expect((await world.client.post(path, { fileId: one.id })).status).toBe(201);
      expect(await world.files(id)).toHaveLength(100);
      tooMuch((await world.client.post(path, { fileId: two.id })).status);
      tooMuch((await world.attach(id, 'more', 'more')).status);
      expect(await world.files(id)).toHaveLength(100);
      await world.client.delete(`${path}/${one.id}`);
      expect((await world.client.post(path, { fileId: two.id })).status).toBe(201);
    });

    describe('with smaller settings, in a process of their own', () => {
      let client: Client;
      let stop: () => Promise<unknown>;
      beforeAll(async () => {
        const started = await world.startApi({
          FILE_LIMIT_BYTES: '1000',
          INLINE_FILE_LIMIT_BYTES: '500',
          DRAFTS_PER_TOKEN: '3',
          EVENTS_PER_BATCH: '1',
          MESSAGE_TEXT_LIMIT: '3',
        });
        client = started.client;
        stop = () => started.api.process.kill('SIGTERM');
      });
      afterAll(() => stop());

      test('fewer events in a batch, and fewer characters in a message', async () => {
        const { id } = await world.newThread();
        const say = (...texts: string[]) =>
          client.post(`/threads/${id}/events`, { events: texts.map((text) => userMessage(text)) });
        for (const texts of [['🐟🐟🐟🐟'], ['a', 'b']]) expect((await say(...texts)).status).toBe(400);
        expect((await say('🐟🐟🐟')).status).toBe(200);
      });

      test('a file of the limit is accepted, one byte more is 413 and leaves nothing', async () => {
        const { token } = await world.newPerson();
        const person = client.as(token);
        const canary = `past-the-limit-${world.backend}-`;
        expect((await world.upload('f', 'x'.repeat(1_000), { client: person })).status).toBe(201);
        const before = await world.rowCounts();
        const more = await world.upload('f', canary.padEnd(1_001, 'x'), { client: person });
        expect(refusal(more)).toEqual([413, 'invalid_request']);
        expect(await world.rowCounts()).toEqual(before);
        await eventually(async () => (await world.blobsWith(canary)) === 0, { what: 'no bytes are left' });
      });

      test('inline: a file of the limit is accepted, one byte more is 413', async () => {
        const { id } = await world.newThread();
        expect((await world.attach(id, 'f', 'x'.repeat(500), client)).status).toBe(201);
        expect((await world.attach(id, 'f', 'x'.repeat(501), client)).status).toBe(413);
      });

      test('unclaimed drafts: one more is refused, until one is claimed or deleted', async () => {
        const { token } = await world.newPerson();
        const person = client.as(token);
        const upload = async (name: string) => (await world.upload(name, name, { client: person })).status;
        const drafts = await Promise.all(['a', 'b', 'c'].map((name) => world.draft(name, name, { client: person })));
        tooMuch(await upload('d'));
        await person.delete(`/files/${drafts[0]!.id}`);
        expect(await upload('e')).toBe(201);
        tooMuch(await upload('f'));
        await world.newThread({ client: person, resources: [drafts[1]!.resource] });
        expect(await upload('g')).toBe(201);
        const together = await Promise.all(['h', 'i', 'j'].map(upload));
        together.forEach(tooMuch);
      });
    });

    test('20 open streams a Thread: one more is 429 rate_limited with Retry-After; closing one makes room', async () => {
      const { token } = await world.newPerson();
      const client = world.as(token);
      const { id } = await world.newThread({ client });
      const path = `/threads/${id}/events/stream`;
      const streams: EventStream[] = [];
      for (let i = 0; i < 20; i++) streams.push(await client.openStream(path));
      const refused = await client.get(path);
      expect([...refusal(refused), refused.headers.get('retry-after')]).toEqual([
        429,
        'rate_limited',
        expect.stringMatching(/^[1-9]\d*$/),
      ]);
      // Only streams of this Thread are refused.
      expect((await client.get(`/threads/${id}`)).status).toBe(200);
      const other = await world.newThread({ client });
      (await client.openStream(`/threads/${other.id}/events/stream`)).close();
      streams.pop()!.close();
      const again = await eventually(() => client.openStream(path), { what: 'there is room again' });
      again.close();
      streams.forEach((stream) => stream.close());
    });

    test('100 open streams of a person’s token: one more is 429 rate_limited, another token is let in', async () => {
      const { token, personId } = await world.newPerson();
      const client = world.as(token);
      const threads: string[] = [];
      // 20 for each Thread.
      for (let i = 0; i < 6; i++) threads.push((await world.newThread({ client })).id);
      const path = (i: number) => `/threads/${threads[Math.floor(i / 20)]}/events/stream`;
      const streams: EventStream[] = [];
      for (let i = 0; i < 100; i++) streams.push(await client.openStream(path(i)));
      const refused = await client.get(path(100));
      expect([...refusal(refused), refused.headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
      const { token: other } = await world.mintFor(personId);
      streams.push(await world.as(other).openStream(path(100)));
      streams.forEach((stream) => stream.close());
    });
  });
}

/** The rate limit, by processes with a small one: it is shared by all pods. */
export function describeRateLimit(world: World): void {
  describe('the rate limit', () => {
    const LIMIT = 10;
    const clients: Client[] = [];
    const stops: (() => Promise<unknown>)[] = [];
    beforeAll(async () => {
      // Behind a proxy, so that a test can have an address of its own: the other areas share this machine's.
      const settings = { RATE_LIMIT_PER_MINUTE: String(LIMIT), TRUSTED_PROXIES: '1' };
      for (const { api, client } of await Promise.all([world.startApi(settings), world.startApi(settings)])) {
        clients.push(client);
        stops.push(() => api.process.kill('SIGTERM'));
      }
    });
    afterAll(() => Promise.all(stops.map((stop) => stop())));

    const newCaller = async () => (await world.newPerson()).token;
    const exhaust = async (token: string): Promise<number> => {
      let passed = 0;
      for (let i = 0; i < LIMIT + 5; i++) {
        const { status } = await clients[i % 2]!.as(token).get(`/agents/${world.agentId}`);
        if (status === 200) passed++;
      }
      return passed;
    };

    test('all pods share one budget; beyond it they return 429 rate_limited with Retry-After in whole seconds, at least 1', async () => {
      const token = await newCaller();
      expect(await exhaust(token)).toBe(LIMIT);
      for (const client of clients) {
        const reply = await client.as(token).get(`/agents/${world.agentId}`);
        expect(refusal(reply)).toEqual([429, 'rate_limited']);
        const seconds = reply.headers.get('retry-after')!;
        expect(seconds).toMatch(/^[1-9]\d*$/);
        expect(Number(seconds)).toBeLessThanOrEqual(60);
      }
    });

    test('RateLimit-* headers state the remaining requests', async () => {
      const client = clients[0]!.as(await newCaller());
      for (let left = LIMIT - 1; left >= LIMIT - 3; left--) {
        const { headers } = await client.get(`/agents/${world.agentId}`);
        expect(headers.get('ratelimit-limit')).toBe(String(LIMIT));
        expect(headers.get('ratelimit-remaining')).toBe(String(left));
        expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60);
      }
    });

    test('requests are limited per caller token: another token of the same person has its own budget', async () => {
      const { personId, token } = await world.newPerson();
      expect(await exhaust(token)).toBe(LIMIT);
      const { token: second } = await world.mintFor(personId);
      expect((await clients[0]!.as(second).get(`/agents/${world.agentId}`)).status).toBe(200);
    });

    test('every request counts: also rejected ones, replays and streams', async () => {
      const client = clients[0]!.as(await newCaller());
      const headers = { 'idempotency-key': `limited-${world.backend}` };
      const create = () => client.post(`/agents/${world.agentId}/threads`, { userId: 'u' }, { headers });
      const { json } = await create();
      expect((await create()).headers.get('idempotency-replayed')).toBe('true');
      (await client.openStream(`/threads/${json.thread.id}/events/stream`)).close();
      await client.get(`/threads/${UNKNOWN}`);
      const { headers: last } = await client.get('/threads/x');
      expect(last.get('ratelimit-remaining')).toBe(String(LIMIT - 5));
    });

    test('requests are counted after the token check, before path, body and access are checked', async () => {
      const token = await newCaller();
      await exhaust(token);
      const client = clients[0]!.as(token);
      const json = { 'content-type': 'application/json' };
      for (const reply of [
        await client.get('/threads/x'),
        await client.post(`/threads/${UNKNOWN}/events`, undefined, { body: '{', headers: json }),
        await client.get(`/agents/${UNKNOWN}`),
      ]) {
        expect(refusal(reply)).toEqual([429, 'rate_limited']);
      }
    });

    test('requests without a valid token are limited by address', async () => {
      const from = (address: number) => ({ 'x-forwarded-for': `192.0.2.${address}` });
      const headers = from(1);
      const path = `/agents/${world.agentId}`;
      const known = clients[0]!.as(await newCaller());
      expect((await known.get(path, { headers: from(2) })).status).toBe(200);
      const statuses: number[] = [];
      for (let i = 0; i < LIMIT + 5; i++) {
        statuses.push((await clients[i % 2]!.get('/threads/x', { token: `none-${i}`, headers })).status);
      }
      expect(statuses.slice(0, LIMIT)).toEqual(Array.from({ length: LIMIT }, () => 401));
      expect(new Set(statuses.slice(LIMIT))).toEqual(new Set([429]));
      // A token that the pod remembers is not counted by address. Another one is, until a look-up proves that it is valid.
      expect((await known.get(path, { headers })).status).toBe(200);
      const other = clients[0]!.as(await newCaller());
      expect((await other.get(path, { headers })).status).toBe(429);
      expect((await other.get(path, { headers: from(2) })).status).toBe(200);
      expect((await other.get(path, { headers })).status).toBe(200);
      expect((await known.get('/threads/x', { token: 'none', headers: from(2) })).status).toBe(401);
    });
  });
}
