import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../platform/index.ts';
import { isChromiumInstalled } from './chromium.ts';
import { memoryFolder, SHARED_MEMORY } from './memory-folder.mjs';
import { isRedisServerInstalled, startPrivateRedis } from './private-redis.ts';
import { deleteLeftoverKeys } from './redis.ts';
import { asAdmin, connectAdmin, dropLeftoverDatabases, lockRun } from './test-database.ts';
import { newRunId, publishRun } from './test-run.ts';

type CleanUp = () => Promise<void>;

/** What has been started for this run, newest last. */
const cleanUps: CleanUp[] = [];
/** What will be skipped, and why. */
let skipped: string[] = [];

/** PostgreSQL and Redis for all spec files of a run: those of DATABASE_URL and REDIS_URL, or else started for it. */
export async function startRunServices(): Promise<void> {
  // Jest does not run globalTeardown when it is interrupted.
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => void stopRunServices().finally(() => process.exit(code)));
  }
  try {
    const id = newRunId();
    const redisUrl = process.env['REDIS_URL'] || (isRedisServerInstalled() ? await startRedis() : undefined);
    noteSkipped(redisUrl);
    const databaseUrl = process.env['DATABASE_URL'] || (await startPostgres());
    await prepareDatabaseServer(databaseUrl, id);
    if (redisUrl) {
      await deleteLeftoverKeys(redisUrl, id);
      cleanUps.push(() => deleteLeftoverKeys(redisUrl, id));
    }
    publishRun({ id, databaseUrl, redisUrl });
  } catch (error) {
    await stopRunServices();
    throw error;
  }
}

export async function stopRunServices(): Promise<void> {
  const failures: unknown[] = [];
  for (let cleanUp = cleanUps.pop(); cleanUp; cleanUp = cleanUps.pop()) {
    await cleanUp().catch((error: unknown) => failures.push(error));
  }
  if (skipped.length > 0) {
    const line = '!'.repeat(Math.max(...skipped.map(({ length }) => length)));
    process.stderr.write(`\n${line}\n${skipped.join('\n')}\n${line}\n`);
  }
  if (failures.length > 0) throw new AggregateError(failures, 'could not clean up all that the test run started');
}

const NO_REDIS = 'SKIPPED: all tests that need Redis. REDIS_URL is not set and redis-server is not on the PATH.';
const NO_REDIS_TO_BREAK = 'SKIPPED: tests that break a Redis of their own. redis-server is not on the PATH.';
const NO_CHROMIUM = 'SKIPPED: all tests in a browser. There is no /usr/bin/chromium, and CHROMIUM names no other.';

function noteSkipped(redisUrl: string | undefined): void {
  skipped = [
    ...(isRedisServerInstalled() ? [] : [redisUrl ? NO_REDIS_TO_BREAK : NO_REDIS]),
    ...(isChromiumInstalled() ? [] : [NO_CHROMIUM]),
  ];
  if (skipped.length > 0 && process.env['CI'] === 'true') throw new Error(skipped.join('\n'));
}

async function startRedis(): Promise<string> {
  const redis = await startPrivateRedis();
  cleanUps.push(() => redis.stop());
  return redis.url;
}

const directoryPrefix = 'spool-test-postgres-';

async function startPostgres(): Promise<string> {
  await removeDeadServers();
  const directory = await mkdtemp(join(memoryFolder(), `${directoryPrefix}${process.pid}-`));
  await chmod(directory, 0o755); // started by root, the server runs as another user, who must get in
  const server = await startEmbeddedPostgres({
    dataDir: join(directory, 'postgres'),
    settings: { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' },
    log: () => undefined,
  });
  cleanUps.push(async () => {
    await server.stop();
    await rm(server.dataDir, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
  });
  return server.ownerUrl;
}

/** Of runs that were killed: the server lives on until someone adopts and stops it. */
async function removeDeadServers(): Promise<void> {
  // The run before may have had less memory, or more.
  const folders = [...new Set([memoryFolder(), SHARED_MEMORY, tmpdir()])].filter((folder) => existsSync(folder));
  const names = await Promise.all(
    folders.map(async (folder) => (await readdir(folder)).map((name) => ({ folder, name }))),
  );
  for (const { folder, name } of names.flat()) {
    if (!name.startsWith(directoryPrefix) || isAlive(parseInt(name.slice(directoryPrefix.length), 10))) continue;
    const dataDir = join(folder, name, 'postgres');
    const mayRun = await stat(join(dataDir, 'pgdata', 'postmaster.pid')).catch(() => undefined);
    if (mayRun) await (await startEmbeddedPostgres({ dataDir, log: () => undefined })).stop();
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function prepareDatabaseServer(databaseUrl: string, runId: string): Promise<void> {
  const lockHolder = await connectAdmin(databaseUrl);
  cleanUps.push(async () => {
    await asAdmin(databaseUrl, (admin) => dropLeftoverDatabases(admin, runId));
    await lockHolder.end();
  });
  await lockRun(lockHolder, runId);
  await dropLeftoverDatabases(lockHolder, runId);
}
