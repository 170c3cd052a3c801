import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { openDatabase, type Database } from '#platform';
import {
  asOwner,
  createTestDatabase,
  currentRun,
  startPrivateRedis,
  type PrivateRedis,
  type TestDatabase,
} from '#testing';
import { allRunsCompleted, expectHealthy } from '../support/checks.ts';
import { createAcknowledged, postEvents, readLog, waitForEntry, type Acknowledged } from '../support/client.ts';
import { startSystem, type System } from '../support/system.ts';

async function empty({ ownerUrl }: TestDatabase): Promise<void> {
  const owner = new Client({ connectionString: ownerUrl });
  await owner.connect();
  await owner.query('drop schema public cascade; create schema public; drop schema bullmq cascade');
  await owner.end();
}

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..').replace(/\/dist$/, '');
const PAGE = join(ROOT, 'docs/operations/backup.md');

/**
 * pg_dump refuses a server of a newer version, as in `npm test`. `npm run test:postgres` has a server of the version of
 * Debian's programs. Without a pg_dump the test fails, so that it cannot vanish from the gate.
 */
const { error, status } = spawnSync('pg_dump', ['--schema-only', '--dbname', currentRun().databaseUrl]);
const isTooOld = error === undefined && status !== 0;

(isTooOld ? describe.skip : describe)('docs/operations/backup.md', () => {
  let folder: string;
  let redis: PrivateRedis;
  let system: System;
  let restored: TestDatabase;
  let database: Database | undefined;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-backup-'));
    await symlink(join(ROOT, 'apps/cli/bin/spool.mjs'), join(folder, 'spool'));
    redis = await startPrivateRedis();
    restored = await createTestDatabase();
    const env = { LEASE_MS: '2000', WORKER_SLOTS: '1', BLOB_URL: pathToFileURL(join(folder, 'bytes')).href };
    system = await startSystem({ queueUrl: redis.url, env });
  }, 60_000);

  afterAll(async () => {
    await database?.close();
    await system?.stop();
    await restored?.drop();
    await redis?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Types the commands of a section in a shell. */
  async function type(section: string, env: Record<string, string>): Promise<void> {
    const page = await readFile(PAGE, 'utf8');
    const text = page.split(/^## /m).find((part) => part.startsWith(section)) ?? '';
    const commands = [...text.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)].map(([, , code]) => code);
    expect(commands.length).toBeGreaterThan(0);
    const PATH = `${folder}:${process.env['PATH']}`;
    await run('bash', ['-euo', 'pipefail', '-c', commands.join('')], {
      cwd: folder,
      env: { ...process.env, PATH, ...env },
    });
  }

  test('a dump taken while Runs are in progress is restored into an empty installation, where all of them end', async () => {
    const first = await Promise.all([system.startApi(), system.startWorker()]);
    const { caller } = first[0];
    const say = (text: string): Promise<Acknowledged> => createAcknowledged(caller, text);
    const ended = await say('/artifact done');
    await waitForEntry(caller, ended.threadId, 'run.completed');
    const waiting = await say('/confirm wait');
    const { content: requestId } = await waitForEntry(caller, waiting.threadId, 'tool.confirmation.required');
    const running = await say('/pause 100 /pieces 40 run');
    await waitForEntry(caller, running.threadId, 'agent.message.delta');
    await say('queue');
    const logs = (who = caller) => Promise.all([ended, waiting].map(({ threadId }) => readLog(who, threadId)));
    const before = await logs();

    const installation = { OWNER_URL: asOwner(system.databaseUrl), BLOB_FOLDER: join(folder, 'bytes') };
    await type('Back up', installation);
    await type('Back up', installation); // over the first one, as by a daily job
    await Promise.all([first[0].process.kill('SIGKILL'), first[1].kill('SIGKILL')]);

    await empty(restored);
    const restoredBytes = join(folder, 'restored-bytes');
    const after = { DATABASE_URL: restored.url, BLOB_URL: pathToFileURL(restoredBytes).href };
    await type('Restore', { ...after, OWNER_URL: restored.ownerUrl, QUEUE_URL: redis.url, BLOB_FOLDER: restoredBytes });
    database = await openDatabase({ url: restored.ownerUrl, applicationName: 'restored', maxConnections: 2 });
    const { rows } = await database.pool.query<{ status: string }>('select status from run_summaries order by status');
    expect(rows.map(({ status }) => status)).toEqual(['completed', 'queued', 'running', 'waiting_input']);

    const [api] = await Promise.all([system.startApi(after), system.startWorker(after)]);
    expect(await logs(api.caller)).toEqual(before);
    const decision = { type: 'permission_decision', requestId, decision: 'allow_once' };
    expect(await postEvents(api.caller, waiting.threadId, decision)).toMatchObject({ status: 200 });
    await allRunsCompleted(database, 4, 45_000);
    await expectHealthy(database);
  }, 120_000);
});
