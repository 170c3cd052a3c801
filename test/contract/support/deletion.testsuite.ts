import { Redis } from 'ioredis';
import { eventually } from '#testing';
import { RawRequest } from './raw-request.ts';
import { message, refusal, userMessage, type World } from './world.ts';

/** I12: after DELETE nothing of the Thread can be read anywhere. */
export function describeDeletion(world: World): void {
  describeDeletableStates(world);
  describe('I12: a Thread is deleted while it runs, streams and uploads', () => {
    const canary = `canary-${world.backend}-4711`;
    const key = `deleted-${world.backend}`;
    const ids: string[] = [];
    const paths: string[] = [];
    let recreate: () => ReturnType<World['create']>;
    let endedStream: { code: string | undefined; end: string | null };
    let uploaded: [number, string | undefined];

    beforeAll(async () => {
      // With a key too: its stored answer has the file’s name in it.
      const headers = { 'idempotency-key': `${key}-draft` };
      const draft = await world.draft(`${canary}.txt`, `${canary} in a draft`, { headers });
      const body = {
        userId: canary,
        input: message(`${canary} /artifact /pause 20 /pieces 5000`),
        resources: [draft.resource],
      };
      recreate = () =>
        world.client.post(`/agents/${world.agentId}/threads`, body, { headers: { 'idempotency-key': key } });
      const { thread, run } = (await recreate()).json;
      const stream = await world.client.openStream(`/threads/${thread.id}/events/stream`);
      await stream.untilType('file.changed');
      await stream.untilType('agent.message.delta');
      const attached = (await world.attach(thread.id, 'a.txt', `${canary} inline`)).json.file;
      const files = await world.files(thread.id);
      expect(files).toHaveLength(3);
      expect(await world.blobsWith(canary)).toBe(3);
      ids.push(thread.id, run.id, ...files.map(({ id }) => id));

      const upload = new RawRequest(world.client, 'POST', `/threads/${thread.id}/files`, {
        'content-type': 'application/json',
      });
      const contentBase64 = Buffer.from(`${canary} too late `.repeat(10_000)).toString('base64');
      const text = JSON.stringify({ name: 'late', contentType: 'text/plain', contentBase64 });
      await upload.write(text.slice(0, text.length / 2));

      expect((await world.client.delete(`/threads/${thread.id}`)).json).toEqual({ ok: true });
      uploaded = refusal(await upload.end(text.slice(text.length / 2)));
      await stream.untilEnded();
      endedStream = { code: stream.error?.code, end: stream.end };
      const threadPaths = ['', '/events', '/events/stream', '/runs', `/runs/${run.id}`, '/files'];
      paths.push(...threadPaths.map((path) => `/threads/${thread.id}${path}`));
      paths.push(...files.flatMap(({ id }) => [`/files/${id}`, `/files/${id}/content`]));
      expect(attached.id).toBe(ids.at(-1));
    }, 60_000);

    test('API: every route with its id, its Run’s or its files’ is 404', async () => {
      const [threadId = '', runId = '', ...fileIds] = ids;
      for (const path of paths)
        expect([path, ...refusal(await world.client.get(path))]).toEqual([path, 404, 'not_found']);
      const replies = [
        await world.send(threadId, userMessage('hi')),
        await world.client.post(`/threads/${threadId}/archive`),
        await world.client.post(`/threads/${threadId}/unarchive`),
        await world.client.post(`/threads/${threadId}/runs/${runId}/retry`),
        await world.attach(threadId, 'x', 'x'),
        await world.client.delete(`/threads/${threadId}`),
        ...(await Promise.all(fileIds.map((id) => world.client.delete(`/files/${id}`)))),
        ...(await Promise.all(fileIds.map((id) => world.client.delete(`/threads/${threadId}/files/${id}`)))),
      ];
      for (const reply of replies) expect(refusal(reply)).toEqual([404, 'not_found']);
    });

    test('the stream ended with thread.error not_found', () => {
      expect(endedStream).toEqual({ code: 'not_found', end: 'ended' });
    });

    test('the upload that was under way is 404', () => {
      expect(uploaded).toEqual([404, 'not_found']);
    });

    test('the queue: no job is left that names it, once the worker has stopped', async () => {
      await eventually(
        async () => {
          const found = await queuedWith(world, [...ids, canary]);
          if (found.length === 0) return true;
          throw new Error(found.join('\n'));
        },
        { what: 'no job names it', timeoutMs: 20_000 },
      );
    });

    test('tables: no row of any table has its ids or its text, but the ids that its idempotency keys are about', async () => {
      expect(await rowsWith(world, [...ids, canary])).toEqual([]);
    });

    test('blobs: no bytes of its files', async () => {
      await eventually(async () => (await world.blobsWith(canary)) === 0, {
        what: 'its bytes are gone',
        timeoutMs: 10_000,
      });
    });

    test('repeating its create with the same key is 404, never a second Thread', async () => {
      const before = await world.rowCounts();
      for (const _ of [1, 2]) expect(refusal(await recreate())).toEqual([404, 'not_found']);
      expect(await world.rowCounts()).toEqual(before);
    });

    test('nothing came back meanwhile', async () => {
      expect(await rowsWith(world, [...ids, canary])).toEqual([]);
      expect(await world.blobsWith(canary)).toBe(0);
    });
  });
}

/** Owners can still delete their Threads (docs/spec/decisions.md#access). */
function describeDeletableStates(world: World): void {
  describe('an owner deletes their Thread in every state of it, while its Agent', () => {
    test.each(['published = false', 'api_enabled = false', 'live_version = null'])('has %s', async (columns) => {
      const agentId = await world.newAgent();
      const threads = [
        await world.newThread({ agentId }),
        (await world.endedThread({ agentId })).thread,
        (await world.waitingThread({ agentId })).thread,
        await world.newThread({ agentId, text: '/pause 20 /pieces 3000' }),
        await world.newThread({ agentId }),
      ].map(({ id }) => id);
      await world.entry(threads[3]!, 'agent.message.delta');
      await world.client.post(`/threads/${threads[4]}/archive`);
      await world.changeAgent(agentId, columns);
      await eventually(async () => (await world.client.get(`/agents/${agentId}`)).status === 409, {
        what: 'it is seen',
      });
      for (const id of threads) {
        expect((await world.client.get(`/threads/${id}`)).status).toBe(409);
        expect((await world.client.delete(`/threads/${id}`)).json).toEqual({ ok: true });
        expect(refusal(await world.client.get(`/threads/${id}`))).toEqual([404, 'not_found']);
      }
      const { rows } = await world.pool.query('select from run_work where thread_id = any ($1)', [threads]);
      expect(rows).toEqual([]);
    });
  });
}

/**
 * BullMQ's trail of its last events, bounded, which names jobs and with them Runs, and nothing else of a Thread. It cannot
 * be switched off: a stream in Redis is only trimmed by whole nodes.
 */
const isTrail = (name: string): boolean => /^bullmq\.event$|:events$/.test(name);
const beyondRuns = ([threadId = '', , ...rest]: string[]): string[] => [threadId, ...rest];

/** Every row of every table that has one of the texts in it, BullMQ's tables included. */
async function rowsWith({ pool }: World, texts: string[]): Promise<string[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
  );
  expect(tables.length).toBeGreaterThan(15);
  const found: string[] = [];
  for (const { name } of tables) {
    const shown = name.endsWith('.idempotency_keys') ? `to_jsonb(t) - 'thread_id' - 'file_id'` : 'to_jsonb(t)';
    const { rows } = await pool.query<{ row: string }>(
      `select (${shown})::text as row from ${name} t where (${shown})::text like any ($1)`,
      [(isTrail(name) ? beyondRuns(texts) : texts).map((text) => `%${text}%`)],
    );
    found.push(...rows.map(({ row }) => `${name}: ${row.slice(0, 300)}`));
  }
  return found;
}

/** Where the queue has one of the texts. */
async function queuedWith(world: World, texts: string[]): Promise<string[]> {
  const { name, url } = world.queue;
  if (url.startsWith('postgres')) {
    const rows = await rowsWith(world, texts);
    return rows.filter((row) => row.startsWith('bullmq.'));
  }
  const redis = new Redis(url, { lazyConnect: true });
  await redis.connect();
  try {
    const found: string[] = [];
    for await (const keys of redis.scanStream({ match: `*${name}*`, count: 1_000 })) {
      for (const key of keys as string[]) {
        const shown = `${key}: ${await contentOf(redis, key)}`;
        const wanted = isTrail(key) ? beyondRuns(texts) : texts;
        if (wanted.some((text) => shown.includes(text))) found.push(shown.slice(0, 300));
      }
    }
    return found;
  } finally {
    redis.disconnect();
  }
}

async function contentOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'string':
      return (await redis.get(key)) ?? '';
    case 'hash':
      return JSON.stringify(await redis.hgetall(key));
    case 'list':
      return JSON.stringify(await redis.lrange(key, 0, -1));
    case 'set':
      return JSON.stringify(await redis.smembers(key));
    case 'zset':
      return JSON.stringify(await redis.zrange(key, 0, -1));
    case 'stream':
      return JSON.stringify(await redis.xrange(key, '-', '+'));
    default:
      return '';
  }
}
