import { reportLatency } from '#testing';
import type { EventStream } from './client.ts';
import { longThread } from './log.testsuite.ts';
import { decide, interrupt, refusal, userMessage, type World } from './world.ts';

/** PostgreSQL's clock, milliseconds. */
async function databaseNow({ pool }: World): Promise<number> {
  const { rows } = await pool.query('select 1000 * extract(epoch from clock_timestamp())::float8 as now');
  return (rows[0] as { now: number }).now;
}

/** The event stream (docs/spec/decisions.md#stream). */
export function describeStream(world: World): void {
  describe('GET /threads/{threadId}/events/stream', () => {
    const path = (threadId: string, query = '') => `/threads/${threadId}/events/stream${query}`;
    const idsOf = (stream: EventStream) => stream.entries.map(({ id }) => id);

    test('headers: text/event-stream; charset=utf-8, no-store, no-transform, no buffering', async () => {
      const { id } = await world.newThread();
      const stream = await world.client.openStream(path(id));
      const { headers } = stream.response;
      expect(stream.response.status).toBe(200);
      expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      expect(headers.get('cache-control')).toBe('no-store, no-transform');
      expect(headers.get('x-accel-buffering')).toBe('no');
      stream.close();
    });

    test('first `: connected` and `retry: <1000–3000, jittered>`, also on a Thread without entries', async () => {
      const { id } = await world.newThread();
      const retries = new Set<number>();
      for (let i = 0; i < 8; i++) {
        const stream = await world.client.openStream(path(id));
        await stream.until('its retry', ({ retryMs }) => retryMs !== undefined);
        expect(stream.comments[0]).toBe('connected');
        // One line feed: a blank line would be a frame to some clients.
        expect(stream.text).toMatch(/^: connected\nretry: \d+\n(?!\n)/);
        retries.add(stream.retryMs!);
        stream.close();
      }
      for (const retryMs of retries) expect(retryMs).toBeGreaterThanOrEqual(1_000);
      for (const retryMs of retries) expect(retryMs).toBeLessThanOrEqual(3_000);
      expect(retries.size).toBeGreaterThan(4);
    });

    test('each thread.event has the ThreadEventLogEntry shape, its id as the frame’s id, the same as in the list', async () => {
      const { id } = await world.newThread({ text: 'Hello /think 20 /tool' });
      const stream = await world.client.readStream(path(id, '?until=idle'));
      expect(stream.end).toBe('ended');
      expect(stream.frames.filter(({ event }) => event === 'thread.event').map((frame) => frame.id)).toEqual(
        idsOf(stream),
      );
      expect(stream.entries).toEqual(await world.log(id));
    });

    test('what happens later comes as it happens', async () => {
      const { id } = await world.newThread();
      const stream = await world.client.openStream(path(id));
      await world.client.post(`/threads/${id}/events`, { events: [userMessage('/confirm')] });
      await stream.untilType('tool.confirmation.required');
      const { content } = stream.entries.find(({ type }) => type === 'tool.confirmation.required')!;
      await world.send(id, decide(content));
      await stream.untilType('run.completed');
      await stream.until('IDLE', ({ entries }) => entries.at(-1)?.content === 'IDLE');
      expect(stream.entries).toEqual(await world.log(id));
      stream.close();
    });

    test('limit 0..1000, default 100: how many past entries come first', async () => {
      const id = await longThread(world, 6);
      const ids = (await world.log(id)).map((entry) => entry.id);
      const first = async (query: string) => idsOf(await world.client.readStream(path(id, `?until=idle${query}`)));
      expect(await first('')).toEqual(ids.slice(-100));
      expect(await first('&limit=0')).toEqual([]);
      expect(await first('&limit=7')).toEqual(ids.slice(-7));
      expect(await first('&limit=1000')).toEqual(ids);
      for (const limit of ['-1', '1001', '1.5', 'x', '', '1&limit=2']) {
        expect(refusal(await world.client.get(path(id, `?limit=${limit}`)))).toEqual([400, 'invalid_request']);
      }
    });

    describe('Last-Event-ID, or after', () => {
      let id: string;
      let log: string[];
      beforeAll(async () => {
        ({ id } = await world.newThread({ text: 'Hello /tool /pieces 30 /pause 10' }));
        await world.ended(id);
        log = (await world.log(id)).map((entry) => entry.id);
      });

      test.each([
        ['Last-Event-ID', (last: string) => ({ query: '', headers: { 'last-event-id': last } })],
        [
          'Last-Event-ID in lower case',
          (last: string) => ({ query: '', headers: { 'last-event-id': last.toLowerCase() } }),
        ],
        [
          'Last-Event-ID, whatever after says,',
          (last: string) => ({
            query: `&after=${log[0]}`,
            headers: { 'last-event-id': last },
          }),
        ],
        ['after', (last: string) => ({ query: `&after=${last}`, headers: {} })],
      ])('%s resumes strictly after that id, at every place', async (_, resume) => {
        for (const [i, last] of log.entries()) {
          const { query, headers } = resume(last);
          const stream = await world.client.readStream(path(id, `?until=idle${query}`), { headers });
          expect(idsOf(stream)).toEqual(log.slice(i + 1));
          expect(stream.response.status).toBe(last === log.at(-1) ? 204 : 200);
        }
      });

      test('it ignores limit, at any age', async () => {
        const long = await longThread(world, 2);
        const ids = (await world.log(long)).map((entry) => entry.id);
        expect(ids.length).toBeGreaterThan(300);
        for (const limit of ['', '&limit=0', '&limit=5']) {
          const stream = await world.client.readStream(path(long, `?until=idle&after=${ids[0]}${limit}`));
          expect(idsOf(stream)).toEqual(ids.slice(1));
        }
      });

      test('one that is no ULID is 400', async () => {
        const reply = await world.client.get(path(id), { headers: { 'last-event-id': 'x' } });
        expect(refusal(reply)).toEqual([400, 'invalid_request']);
        expect(reply.json.error.message).toContain('Last-Event-ID');
        expect(refusal(await world.client.get(path(id, '?after=x')))).toEqual([400, 'invalid_request']);
      });

      test('nothing lost, nothing doubled, of a Run that goes on while the reader comes and goes', async () => {
        const thread = await world.newThread({ text: 'Hello /pieces 200 /pause 5' });
        const seen: string[] = [];
        for (let idle = false; !idle;) {
          const headers: Record<string, string> = seen.length === 0 ? {} : { 'last-event-id': seen.at(-1)! };
          const stream = await world.client.openStream(path(thread.id, '?until=idle'), { headers });
          await stream.until('three frames or the end', ({ frames, end }) => frames.length >= 3 || end !== null);
          stream.close();
          seen.push(...idsOf(stream));
          idle = stream.response.status === 204 || stream.frames.some(({ event }) => event === 'thread.idle');
        }
        expect(seen).toEqual((await world.log(thread.id)).map((entry) => entry.id));
      });
    });

    describe('until=idle', () => {
      test('ends with thread.idle once no Run is active and all is delivered', async () => {
        const { thread, asked } = await world.waitingThread();
        const stream = await world.client.openStream(path(thread.id, '?until=idle'));
        await stream.untilType('tool.confirmation.required');
        expect(stream.end).toBeNull();
        await world.send(thread.id, decide(asked.content));
        await stream.untilEnded();
        expect(stream.text.endsWith('\n\nevent: thread.idle\ndata: {}\n\n')).toBe(true);
        expect(stream.entries).toEqual(await world.log(thread.id));
      });

      test('at once on an idle Thread', async () => {
        const { id } = await world.newThread();
        const { frames, end } = await world.client.readStream(path(id, '?until=idle'));
        expect([frames.map(({ event }) => event), end]).toEqual([['thread.idle'], 'ended']);
      });

      test('a resume id later than the last entry counts as delivered', async () => {
        const { thread, asked } = await world.waitingThread();
        const headers = { 'last-event-id': '7ZZZZZZZZZZZZZZZZZZZZZZZZZ' };
        const stream = await world.client.openStream(path(thread.id, '?until=idle'), { headers });
        await world.send(thread.id, decide(asked.content));
        await stream.untilEnded();
        expect(stream.frames.map(({ event }) => event)).toEqual(['thread.idle']);
      });

      test('a Last-Event-ID equal to the last entry is 204 if no Run is active, and otherwise a stream', async () => {
        const { thread, asked } = await world.waitingThread();
        const resume = async () => {
          const headers = { 'last-event-id': (await world.log(thread.id)).at(-1)!.id };
          return world.client.openStream(path(thread.id, '?until=idle'), { headers });
        };
        const before = await world.log(thread.id);
        const stream = await resume();
        expect(stream.response.status).toBe(200);
        await world.send(thread.id, decide(asked.content));
        await stream.untilEnded();
        expect(stream.frames.at(-1)!.event).toBe('thread.idle');
        expect([...before, ...stream.entries]).toEqual(await world.log(thread.id));
        const again = await resume();
        expect([again.response.status, again.response.headers.get('content-type')]).toEqual([204, null]);
      });

      test('another value is 400', async () => {
        const { id } = await world.newThread();
        expect(refusal(await world.client.get(path(id, '?until=dawn')))).toEqual([400, 'invalid_request']);
      });
    });

    describe('thread.error with the error envelope, then the end', () => {
      const endings = new Map<string, Promise<{ stream: EventStream; tookMs: number }>>();

      const openByOwnToken = async () => {
        const { token, id: tokenId } = await world.mintFor(world.owner.personId);
        const { id } = await world.newThread();
        return { id, tokenId, stream: await world.as(token).openStream(path(id)) };
      };
      const endOf = async (stream: EventStream, cause: () => Promise<unknown>) => {
        await stream.until('that it is open', ({ retryMs }) => retryMs !== undefined);
        await cause();
        const since = await databaseNow(world);
        await stream.untilEnded();
        return { stream, tookMs: (await databaseNow(world)) - since };
      };
      const ofAgent = async (columns: string) => {
        const agentId = await world.newAgent();
        const { id } = await world.newThread({ agentId });
        return endOf(await world.client.openStream(path(id)), () => world.changeAgent(agentId, columns));
      };
      const causes: [string, string, () => Promise<{ stream: EventStream; tookMs: number }>][] = [
        [
          'the token is revoked',
          'unauthenticated',
          async () => {
            const { tokenId, stream } = await openByOwnToken();
            return endOf(stream, () => world.access.revokeToken(tokenId));
          },
        ],
        [
          'the token expires',
          'unauthenticated',
          async () => {
            const { tokenId, stream } = await openByOwnToken();
            return endOf(stream, () =>
              world.pool.query('update tokens set expires_at = now() where id = $1', [tokenId]),
            );
          },
        ],
        [
          'the Thread is deleted',
          'not_found',
          async () => {
            const { id, stream } = await openByOwnToken();
            return endOf(stream, () => world.client.delete(`/threads/${id}`));
          },
        ],
        [
          'access is withdrawn',
          'forbidden',
          async () => {
            const { personId, token } = await world.newPerson();
            const client = world.as(token);
            const { id } = await world.newThread({ client });
            const withdraw = () => world.pool.query('delete from memberships where person_id = $1', [personId]);
            return endOf(await client.openStream(path(id)), withdraw);
          },
        ],
        ['the Agent is no longer published', 'agent_not_published', () => ofAgent('published = false')],
        ['the Agent’s API access is switched off', 'service_inactive', () => ofAgent('api_enabled = false')],
        ['the Agent is deleted', 'not_found', () => ofAgent('deleted_at = now()')],
      ];

      let untouched: EventStream;
      // All at once: each takes its seconds.
      beforeAll(async () => {
        untouched = await world.client.openStream(path((await world.newThread()).id));
        for (const [when, , happen] of causes) endings.set(when, happen());
        for (const ending of endings.values()) ending.catch(() => undefined);
      });

      for (const [when, code] of causes) {
        test(`when ${when}: ${code}`, async () => {
          const { stream, tookMs } = (await endings.get(when))!;
          const end = [stream.end, stream.frames.at(-1)?.event, stream.error?.code];
          expect(end).toEqual(['ended', 'thread.error', code]);
          if (code === 'not_found') expect(stream.error!.message).toBe('The Thread was not found.');
          // test/operations/policy.e2e.spec.ts checks that a stream shows nothing that was stored more than 5 s later.
          reportLatency(5_000, tookMs, `when ${when}, a stream ended after`);
        });
      }

      test('no other stream ends, of the same person and token', async () => {
        await Promise.all(endings.values());
        expect(untouched.end).toBeNull();
      });
    });

    test('on any pod, and after a restart: a stream ends at shutdown and resumes elsewhere by id', async () => {
      const { api, client } = await world.startApi({});
      const { thread } = await world.waitingThread();
      const stream = await client.openStream(path(thread.id));
      await stream.untilType('tool.confirmation.required');
      await api.process.kill('SIGTERM');
      await stream.untilEnded();
      expect(stream.end).toBe('ended');
      await world.send(thread.id, interrupt());
      const headers = { 'last-event-id': idsOf(stream).at(-1)! };
      const rest = await world.client.readStream(path(thread.id, '?until=idle'), { headers });
      expect([...idsOf(stream), ...idsOf(rest)]).toEqual((await world.log(thread.id)).map(({ id }) => id));
    });

    test('a refused stream is answered as every request is, in JSON', async () => {
      const { id } = await world.newThread();
      expect(refusal(await world.client.get(path(id), { token: null }))).toEqual([401, 'unauthenticated']);
    });
  });
}

/** `: keepalive` after 15 s of silence: opened when the suite starts, so that nobody waits for it alone. */
export function describeKeepalive(world: World): void {
  let silence: Promise<{ stream: EventStream; silentMs: number }>;
  beforeAll(() => {
    const keepsSilent = async () => {
      const { id } = await world.newThread();
      // Before the silence begins, so that a pause of the machine can only add to it.
      const since = await databaseNow(world);
      const stream = await world.client.openStream(`/threads/${id}/events/stream`);
      await stream.until('a keepalive', ({ comments }) => comments.includes('keepalive'), 25_000);
      return { stream, silentMs: (await databaseNow(world)) - since };
    };
    silence = keepsSilent();
    silence.catch(() => undefined);
  });

  test('`: keepalive` after 15 s of silence, and not before', async () => {
    const { stream, silentMs } = await silence;
    expect(silentMs).toBeGreaterThan(13_500);
    expect([stream.comments, stream.entries]).toEqual([expect.arrayContaining(['connected', 'keepalive']), []]);
    reportLatency(17_500, silentMs, 'a keepalive came after');
  });
}
