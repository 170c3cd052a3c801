import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { eventually, type SpawnedNode } from '#testing';
import type { Client } from '../contract/support/client.ts';
import { RawRequest, startUpload } from '../contract/support/raw-request.ts';
import { refusal, World } from '../contract/support/world.ts';

const MEBIBYTE = 1024 * 1024;
const FILE_BYTES = 64 * MEBIBYTE;
const CHUNK = randomBytes(64 * 1024);
const ROUNDS = 3;
const MAX_GROWTH = 16 * MEBIBYTE;

/**
 * In the API's process: SIGUSR2 collects garbage and says how much memory the process has (`rss`) and how much of it is in
 * use (`live`). More than once: what was collected is given back by other threads, a little later.
 */
const PRELOAD = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  let count = 0;
  process.on('SIGUSR2', async () => {
    for (let i = 0; i < 5; i++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    console.log('memory #' + ++count + ': ' + rss + ' ' + (heapUsed + external));
  });`;

/**
 * 64 MiB, streamed to storage, never whole in memory (docs/spec/decisions.md#limits). What the queue is does not
 * matter here.
 */
describe('a file of 64 MiB', () => {
  const world = new World('PostgreSQL', () => undefined);
  let client: Client;
  let process: SpawnedNode;
  let readings = 0;

  beforeAll(async () => {
    await world.start();
    const preload = `--import=data:text/javascript,${encodeURIComponent(PRELOAD)}`;
    const started = await world.startApi({ NODE_OPTIONS: preload });
    client = started.client;
    ({ process } = started.api);
  }, 120_000);
  afterAll(() => world.stop());

  const memory = async (): Promise<{ rss: number; live: number }> => {
    process.signal('SIGUSR2');
    const said = await process.waitForLine(new RegExp(`memory #${++readings}: (\\d+) (\\d+)`), 30_000);
    return { rss: Number(said[1]), live: Number(said[2]) };
  };

  /** Sends all but the last chunk, then lets the caller look. */
  const upload = async (bytes: number, halfWay: () => Promise<void> = async () => undefined) => {
    const { upload: sending, finish } = startUpload(client, world.agentId, 'large.bin');
    const hash = createHash('sha256');
    for (let sent = 0; sent < bytes; sent += CHUNK.length) {
      const chunk = CHUNK.subarray(0, Math.min(CHUNK.length, bytes - sent));
      if (sent + CHUNK.length === bytes) await halfWay();
      hash.update(chunk);
      await sending.write(chunk);
    }
    return { reply: await finish(), sha256: hash.digest('hex') };
  };

  const download = async (path: string, halfWay: () => Promise<void>): Promise<string> => {
    const receiving = await fetch(`${client.baseUrl}${path}`, { headers: { authorization: `Bearer ${client.token}` } });
    expect(receiving.status).toBe(200);
    const hash = createHash('sha256');
    let received = 0;
    for await (const chunk of receiving.body!) {
      const before = received;
      received += (chunk as Uint8Array).length;
      hash.update(chunk as Uint8Array);
      // Nothing is taken meanwhile: what the process has read ahead, it has in memory.
      if (before < FILE_BYTES / 2 && received >= FILE_BYTES / 2) await halfWay();
    }
    expect(received).toBe(FILE_BYTES);
    return hash.digest('hex');
  };

  test('is uploaded and downloaded, and the process grows by less than 16 MiB', async () => {
    const { id } = await world.newThread();
    await upload(CHUNK.length * 4);
    const growth = { uploading: [], uploaded: [], downloading: [], downloaded: [] } as Record<string, number[]>;
    for (let round = 0; round < ROUNDS; round++) {
      const before = await memory();
      // Half-way, what the allocator keeps for the next piece says nothing: what is in use does.
      const noteLive = async (when: string) => void growth[when]!.push((await memory()).live - before.live);
      const noteRss = async (when: string) => void growth[when]!.push((await memory()).rss - before.rss);
      const { reply, sha256 } = await upload(FILE_BYTES, () => noteLive('uploading'));
      expect([reply.status, reply.json.file?.size]).toEqual([201, FILE_BYTES]);
      await noteRss('uploaded');
      const { file } = (await client.post(`/threads/${id}/files`, { fileId: reply.json.file.id })).json;
      expect(await download(`/files/${file.id}/content`, () => noteLive('downloading'))).toBe(sha256);
      await noteRss('downloaded');
      await client.delete(`/files/${file.id}`);
    }
    const tooMuch = Object.entries(growth).filter(([, values]) => median(values) >= MAX_GROWTH);
    expect(tooMuch).toEqual([]);
  }, 120_000);

  test('one byte more is refused with 413 invalid_request, and leaves nothing', async () => {
    const before = await stored();
    const { reply } = await upload(FILE_BYTES + 1);
    expect(refusal(reply)).toEqual([413, 'invalid_request']);
    await isStored(before);
  }, 60_000);

  test('a cut upload leaves nothing: no row, no bytes', async () => {
    const before = await stored();
    for (const part of [0, 1, 200]) {
      const { upload: sending } = startUpload(client, world.agentId, 'cut.bin');
      for (let i = 0; i < part; i++) await sending.write(CHUNK);
      if (part > 1) await eventually(async () => (await stored()).bytes !== before.bytes, { what: 'bytes arrive' });
      sending.cut();
      await isStored(before);
    }
    const { id } = await world.newThread();
    const inline = new RawRequest(client, 'POST', `/threads/${id}/files`, { 'content-type': 'application/json' });
    await inline.write('{"name":"cut","contentType":"text/plain","contentBase64":"YWJj');
    inline.cut();
    await isStored(before);
    expect(await world.files(id)).toEqual([]);
  }, 60_000);

  const stored = async () => {
    const { rows } = await world.pool.query<{ files: number; notes: number }>(
      `select (select count(*)::integer from files) as files, (select count(*)::integer from unclaimed_blobs) as notes`,
    );
    const entries = await readdir(world.blobFolder, { recursive: true, withFileTypes: true });
    return { ...rows[0]!, bytes: entries.filter((entry) => entry.isFile()).length };
  };
  const isStored = (before: object) =>
    eventually(
      async () => {
        expect(await stored()).toEqual(before);
        return true;
      },
      { what: 'nothing of it is left', timeoutMs: 10_000 },
    );
});

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
