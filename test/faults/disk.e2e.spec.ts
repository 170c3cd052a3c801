import { randomBytes } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAgent, publishAgentVersion } from '#agents';
import { migrateInstallation } from '#run-queue';
import { isDatabaseUnavailable } from '#platform';
import {
  describeWithRedis,
  eventually,
  type PrivatePostgres,
  redisUrl,
  reportFigure,
  startPrivatePostgres,
} from '#testing';
import { createAcknowledged, createThread, getThread, readLog, send, type Caller } from '../support/client.ts';
import { FakeProvider, scriptText } from '../support/fake-provider.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { describeWithSmallDisk, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { StandardLoad } from '../support/standard-load.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

/** F14. How long the disk is full. */
const FULL_MS = isLong ? 30_000 : 3_000;
/** And at least so long without a server. */
const DEAD_MS = 500;
const RECOVERED_WITHIN_MS = 10_000;
/** SQLSTATE of a statement that does not fit. */
const NO_ROOM = '53100';

describeWithRedis('disks that are full', () => {
  describeWithSmallDisk('of PostgreSQL and of the blobs (F14)', () => {
    let databaseDisk: SmallDisk;
    let blobDisk: SmallDisk;
    let postgres: PrivatePostgres;
    let fakeProvider: FakeProvider;
    let system: System;
    let caller: Caller;

    beforeAll(async () => {
      [databaseDisk, blobDisk] = [await mountSmallDisk('192m'), await mountSmallDisk('8m')];
      const settings = { max_wal_size: '48MB', min_wal_size: '32MB' };
      const dataDir = join(databaseDisk.path, 'postgres');
      [postgres, fakeProvider] = await Promise.all([startPrivatePostgres({ dataDir, settings }), FakeProvider.start()]);
      await migrateInstallation({ ownerUrl: postgres.ownerUrl, appUrl: postgres.url });
      system = await startSystem({
        queueUrl: redisUrl().url,
        testDatabase: { ...postgres, drop: () => postgres.stop() },
        manifest: fakeProvider.manifest,
        env: {
          ...fakeProvider.env,
          LEASE_MS: '2000',
          HOUSEKEEPING_MS: '200',
          BLOB_URL: `file://${blobDisk.path}/blobs`,
        },
      });
      [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
    }, 120_000);

    /** What goes on beside a test, for when it ends early. */
    const beside: { stop(): Promise<unknown> }[] = [];

    afterEach(async () => {
      await databaseDisk.free();
      await Promise.allSettled(beside.splice(0).map((one) => one.stop()));
    });

    afterAll(async () => {
      await system.stop();
      await fakeProvider.close();
      await Promise.all([databaseDisk.remove(), blobDisk.remove()]);
    });

    const ask = async <Row>(text: string, ...values: unknown[]): Promise<Row[]> =>
      (await system.database.pool.query(text, values)).rows as Row[];

    test(
      'PostgreSQL’s: 503 at worst, nothing acknowledged is lost, and it recovers by itself',
      async () => {
        const random = seededRandom(freshSeed(), 'F14');
        const options = { threads: 6, messages: isLong ? 30 : 3, pieces: 20, pauseMs: 20, readers: 2 };
        const load = new StandardLoad(
          { database: system.database, fakeProvider, callers: [() => caller], random },
          options,
        );
        await eventually(() => load.ended > 2, { what: 'the load is under way', timeoutMs: 20_000 });
        const [writes, reads] = [keepCreating(), keepReading(load.said[0]!.threadId)];
        load.faulty();
        const fullAt = performance.now();
        const supervising = keepRunning();
        beside.push(writes, reads, supervising);
        const keepFull = async (until: () => boolean): Promise<void> => {
          for (; !until(); await sleep(20)) await databaseDisk.fill();
        };
        await keepFull(() => writes.count().away + writes.count().other.length > 0);
        expect(writes.count().other).toEqual([]);
        // Now its log is to have no room either: it dies of that, and cannot come back while there is none.
        const diesOfIt = keepSwitchingLogs();
        beside.push(diesOfIt);
        await keepFull(() => performance.now() > Math.max(fullAt + FULL_MS, diesOfIt.diedAt() + DEAD_MS));
        await diesOfIt.stop();
        const during = { writes: writes.count(), reads: reads.count() };
        await databaseDisk.free();
        const freedAt = performance.now();
        const isBack = (): boolean => writes.lastOkAt() > freedAt;
        await eventually(isBack, { what: 'Threads are created again', timeoutMs: 30_000 });
        const recoveredMs = performance.now() - freedAt;
        const restarts = await supervising.stop();
        load.healthy();
        await load.finished(upTo(60_000));
        const created = await writes.stop();
        await reads.stop();
        reportFigure(
          `F14, PostgreSQL: full for ${FULL_MS} ms, ${JSON.stringify(during)}, started again ${restarts} times, ` +
            `recovered ${Math.round(recoveredMs)} ms after there was room`,
        );
        expect(load.said).toHaveLength(load.threads * load.messages);
        expect(during.writes.away).toBeGreaterThan(0);
        expect(during.reads.ok).toBeGreaterThan(0);
        expect([writes.count().other, reads.count().other]).toEqual([[], []]);
        expect(recoveredMs).toBeLessThan(RECOVERED_WITHIN_MS);
        const kept = await ask<{ id: string }>(
          'select thread_id as id from streams where thread_id = any ($1)',
          created,
        );
        expect(kept).toHaveLength(created.length);
        const areOver = async (): Promise<boolean> => (await ask('select from run_work')).length === 0;
        await eventually(areOver, { what: 'all other Runs have ended too', timeoutMs: 30_000 });
        await load.holds();
      },
      upTo(120_000),
    );

    /** As a supervisor does: it may have given up where it could not write its log. Answers how often. */
    function keepRunning() {
      let isOver = false;
      let restarts = 0;
      const loop = (async () => {
        for (; !isOver; await sleep(50)) {
          if (await postgres.isRunning()) continue;
          await postgres.start().then(
            () => restarts++,
            () => undefined, // there is still no room
          );
        }
      })();
      return {
        stop: async (): Promise<number> => {
          isOver = true;
          await loop;
          return restarts;
        },
      };
    }

    /** Each takes a new file, which soon does not fit. */
    function keepSwitchingLogs() {
      let isOver = false;
      let diedAt = Infinity;
      const loop = (async () => {
        for (; !isOver; await sleep(20)) {
          await ask('select pg_switch_wal()').catch((error: unknown) => {
            const hasDied = isDatabaseUnavailable(error) && (error as { code?: string }).code !== NO_ROOM;
            if (hasDied) diedAt = Math.min(diedAt, performance.now());
          });
        }
      })();
      return {
        diedAt: () => diedAt,
        stop: async (): Promise<void> => {
          isOver = true;
          await loop;
        },
      };
    }

    function keepCreating() {
      const ids: string[] = [];
      const loop = keepAsking(async () => {
        // Large, so that what PostgreSQL has in reserve is soon used up.
        const text = scriptText(randomBytes(15_000).toString('base64'), { pieces: 1, pauseMs: 0, tools: [] });
        const answer = await createThread(caller, text);
        if (answer.status === 201) ids.push(answer.body.thread.id);
        return answer;
      });
      return { ...loop, stop: () => loop.stop().then(() => ids) };
    }

    const keepReading = (threadId: string) => keepAsking(() => send(caller, 'GET', `/threads/${threadId}/events`));

    test(
      'the blobs’: an upload is 503 and leaves nothing, a Run waits with its artifact, and all goes on by itself',
      async () => {
        const small = await upload(1_000);
        expect(small.status).toBe(201);
        const before = await storedFiles();
        await blobDisk.fill();
        for (const bytes of [1_000, 1_000_000]) {
          const refused = await upload(bytes);
          expect(refused).toMatchObject({ status: 503, retryAfter: '1', body: { error: { code: 'internal_error' } } });
        }
        expect(await storedFiles()).toEqual(before);
        // It was there before, and can be had.
        expect((await send(caller, 'GET', `/files/${small.body.file!.id}`)).status).toBe(200);

        const { threadId } = await createAcknowledged({ ...caller, agentId: await newEchoAgent() }, '/artifact');
        const isPutOff = async (): Promise<boolean> =>
          (await readLog(caller, threadId)).some(({ content }) => content === 'RESCHEDULING');
        await eventually(isPutOff, { what: 'the Run is put off', timeoutMs: 10_000 });
        await blobDisk.free();
        expect((await upload(1_000_000)).status).toBe(201);
        const isDone = async (): Promise<boolean> =>
          (await getThread(caller, threadId)).body.run?.status === 'completed';
        await eventually(isDone, { what: 'the Run goes on to its end', timeoutMs: 20_000 });
        const { body } = await send<{ files: { kind: string }[] }>(caller, 'GET', `/threads/${threadId}/files`);
        expect(body.files).toHaveLength(1);

        // What was noted and never became a file is swept when it is due.
        await ask('update unclaimed_blobs set due_at = clock_timestamp()');
        await eventually(async () => (await ask('select from unclaimed_blobs')).length === 0, { what: 'all is swept' });
        const after = await storedFiles();
        expect(after.onDisk).toEqual(after.inDatabase);
        expect(after.inDatabase).toHaveLength(before.inDatabase.length + 2);
      },
      upTo(60_000),
    );

    /** What has bytes, by key and size, and what says so. */
    async function storedFiles() {
      const folder = join(blobDisk.path, 'blobs');
      const found = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      const onDisk = await Promise.all(
        files.map(async (path) => `${path.slice(folder.length + 1)} ${(await stat(path)).size}`),
      );
      const rows = await ask<{ file: string }>(`select blob_key || ' ' || size as file from files`);
      return { onDisk: onDisk.sort(), inDatabase: rows.map(({ file }) => file).sort() };
    }

    async function upload(bytes: number) {
      const form = new FormData();
      form.set('file', new Blob([Buffer.alloc(bytes, 'x')]), 'some.txt');
      const init = { method: 'POST', headers: { authorization: `Bearer ${caller.token}` }, body: form };
      const response = await fetch(`${caller.baseUrl}/agents/${caller.agentId}/files`, init);
      const body = (await response.json()) as { file?: { id: string }; error?: { code: string } };
      return { status: response.status, retryAfter: response.headers.get('retry-after'), body };
    }

    async function newEchoAgent(): Promise<string> {
      const [{ organizationId }] = (await ask('select organization_id as "organizationId" from agents')) as [
        { organizationId: string },
      ];
      const manifest = { name: 'echo', harness: { name: 'echo' }, limits: { maxLosses: 100 } };
      const agentId = await createAgent(system.database.pool, { organizationId, manifest });
      await publishAgentVersion(system.database.pool, agentId, manifest);
      return agentId;
    }
  });
});

/** Asks again and again, and counts the answers; `other` is what must not be. */
function keepAsking(ask: () => Promise<{ status: number; headers: Headers; body: unknown }>) {
  const count = { ok: 0, away: 0, other: [] as string[] };
  let isOver = false;
  let lastOkAt = 0;
  const loop = (async () => {
    for (; !isOver; await sleep(10)) {
      const sentAt = performance.now();
      const { status, headers, body } = await ask();
      if (status < 300) [count.ok, lastOkAt] = [count.ok + 1, sentAt];
      else if (status === 503 && headers.has('retry-after')) count.away++;
      else count.other.push(`${status} ${JSON.stringify(body)}`);
    }
  })();
  return {
    count: () => ({ ...count }),
    lastOkAt: () => lastOkAt,
    stop: async (): Promise<void> => {
      isOver = true;
      await loop;
    },
  };
}
