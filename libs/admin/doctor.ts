import { statfs } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { AgentCatalogue } from '#agents';
import type { DoctorCheck } from '#contract';
import { readMigrations, readRole } from '#event-store';
import type { BlobKeeper } from '#files';
import { isRedisUrl, parseRedisAddress, readVersion, redisUrlOf } from '#platform';
import { askRedis } from './ask-redis.ts';
import { checkAgents } from './check-agents.ts';
import { checkSandbox } from './check-sandbox.ts';
import type { QueueParts } from './read-queue.ts';

export interface DoctorParts extends QueueParts {
  blobs: BlobKeeper;
  agents: AgentCatalogue;
}

type Found = Pick<DoctorCheck, 'status' | 'message'>;

const ok = (message: string): Found => ({ status: 'ok', message });
const warning = (message: string): Found => ({ status: 'warning', message });
const failed = (message: string): Found => ({ status: 'failed', message });

/** The checks by name. An error fails only its own check. */
const CHECKS: Record<string, (parts: DoctorParts) => Promise<Found>> = {
  versions: checkVersions,
  database: checkDatabase,
  migrations: checkMigrations,
  role: checkRole,
  clock: checkClock,
  queue: checkQueue,
  redis: checkRedis,
  workers: checkWorkers,
  disk: checkDisk,
  blobs: checkBlobs,
  agents: ({ pool, agents, config }) => checkAgents(pool, agents, config),
  sandbox: ({ pool, config }) => checkSandbox(pool, config),
};

/** The timeout of a check, milliseconds. A healthy check is faster. */
const PATIENCE_MS = 10_000;

/** Checks all dependencies of this process. Never throws. */
export async function runDoctor(parts: DoctorParts): Promise<DoctorCheck[]> {
  const checks = Object.entries(CHECKS).map(async ([name, check]): Promise<DoctorCheck> => {
    const found = await withPatience(check(parts)).catch((error: unknown) => failed(describeError(error)));
    return { name, ...found };
  });
  return Promise.all(checks);
}

/** Returns only the message, because other fields contain addresses. */
function describeError(error: unknown): string {
  return error instanceof Error ? error.message : 'The check failed.';
}

async function withPatience(found: Promise<Found>): Promise<Found> {
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<Found>((resolve) => {
    timer = setTimeout(() => resolve(failed(`No answer within ${PATIENCE_MS / 1_000} s.`)), PATIENCE_MS);
  });
  return Promise.race([found, tooSlow]).finally(() => clearTimeout(timer));
}

async function checkVersions(): Promise<Found> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const versions = `Spool ${readVersion()}, Node ${process.versions.node}`;
  const isOld = major < 20 || (major === 20 && minor < 19);
  return isOld ? failed(`${versions}: Node 20.19 or newer is needed.`) : ok(versions);
}

async function checkDatabase({ pool }: DoctorParts): Promise<Found> {
  const { rows } = await pool.query<{ version: string; fsync: string; commit: string; recovery: boolean }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit, pg_is_in_recovery() as recovery`,
  );
  const { version, fsync, commit, recovery } = rows[0]!;
  const name = `PostgreSQL ${version}`;
  const major = parseInt(version, 10);
  if (major < 15) return failed(`${name}: 15 to 18 are supported.`);
  if (recovery) return failed(`${name} is a standby; DATABASE_URL must point to the primary.`);
  if (fsync === 'off') return failed(`${name} has fsync off: a crash can lose acknowledged writes.`);
  if (commit === 'off') return warning(`${name} has synchronous_commit off: a crash can lose the latest writes.`);
  return major > 18 ? warning(`${name}: 15 to 18 are tested.`) : ok(name);
}

async function checkMigrations({ pool }: DoctorParts): Promise<Found> {
  const { pending, unknown } = await readMigrations(pool);
  if (pending.length > 0) return failed(`Pending migrations: ${pending.join(', ')}. Run: spool migrate`);
  if (unknown.length > 0) return warning(`The database has migrations of a newer release: ${unknown.join(', ')}.`);
  return ok('The database is up to date.');
}

async function checkRole({ pool }: DoctorParts): Promise<Found> {
  const { name, isSuperuser, isOwner, mayCreate, mayChange } = await readRole(pool);
  const rights = [
    isSuperuser && 'is a superuser',
    isOwner && 'owns the tables',
    mayCreate && 'may create tables',
    mayChange.length > 0 && `may change ${mayChange.join(' and ')}`,
  ].filter((right) => right !== false);
  if (rights.length === 0) return ok(`The role "${name}" cannot change the schema, events or audit entries.`);
  const cure = 'Let processes use a restricted role (docs/operations/postgresql.md#roles).';
  return warning(`The role "${name}" ${rights.join(', ')}. ${cure}`);
}

/** The largest clock difference without a warning. Leases use the database clock; token expiry and events use this one. */
const CLOCK_MS = 1_000;

async function checkClock({ pool }: DoctorParts): Promise<Found> {
  const before = Date.now();
  const { rows } = await pool.query<{ now: string }>('select clock_timestamp() as now');
  const after = Date.now();
  const offMs = Date.parse(rows[0]!.now) - (before + after) / 2;
  const message = `The clocks of this process and the database differ by ${Math.round(Math.abs(offMs))} ms.`;
  return Math.abs(offMs) > CLOCK_MS + (after - before) / 2
    ? warning(`${message} Synchronize the clocks.`)
    : ok(message);
}

async function checkQueue({ queue, controls }: DoctorParts): Promise<Found> {
  const [waiting] = await Promise.all([queue.waitingCount(), controls.checkToolPause(queue)]);
  const { paused, pausedByTool, unavailable } = await controls.read();
  if (unavailable) return failed('The workers cannot reach the queue. Check QUEUE_URL and the network.');
  if (pausedByTool) return warning('A BullMQ tool has paused the queue; no Run starts. Run: spool queue resume');
  return paused ? warning('The queue is paused; no Run starts. Run: spool queue resume') : ok(`${waiting} jobs wait.`);
}

async function checkRedis({ config }: DoctorParts): Promise<Found> {
  const url = redisUrlOf(config);
  if (url === undefined) return ok('Not used: queue, wake-ups and rate limits are in PostgreSQL.');
  const { kind, sentinel } = parseRedisAddress(url);
  const masters = await askRedis(url, 3_000);
  const versions = [...new Set(masters.map(({ version }) => version))].join(' and ');
  const form = { single: '', sentinel: ` (master "${sentinel?.master}")`, cluster: ` (${masters.length} masters)` }[
    kind
  ];
  const name = `Redis ${versions}${form}`;
  const policy = masters.map((master) => master.policy).find((given) => given !== undefined && given !== 'noeviction');
  if (policy !== undefined) {
    const why = `${name} has maxmemory-policy ${policy} and may delete jobs; set it to noeviction.`;
    return isRedisUrl(config.QUEUE_URL) ? failed(why) : warning(why);
  }
  const alone = masters.filter(({ replicas }) => replicas === 0).length;
  if (kind !== 'single' && alone > 0) return warning(`${name}: masters without a replica: ${alone}.`);
  return ok(`${name}, maxmemory-policy noeviction`);
}

async function checkWorkers({ controls }: DoctorParts): Promise<Found> {
  const { slots } = await controls.read();
  return slots > 0
    ? ok(`${slots} slots on live workers`)
    : warning('No worker is alive, so no Run starts. Start a worker.');
}

const GIB = 1024 ** 3;

async function checkDisk({ config }: DoctorParts): Promise<Found> {
  const { BLOB_URL, DATA_DIR } = config;
  const folder = BLOB_URL?.startsWith('file:') ? fileURLToPath(BLOB_URL) : DATA_DIR;
  const disk = await statfs(folder).catch(() => null);
  if (disk === null) return ok(`${folder} does not exist yet.`);
  const free = disk.bavail * disk.bsize;
  const message = `${(free / GIB).toFixed(1)} GiB free at ${folder}`;
  if (free < GIB / 10) return failed(message);
  return free < GIB || disk.bavail / disk.blocks < 0.05 ? warning(message) : ok(message);
}

async function checkBlobs({ blobs }: DoctorParts): Promise<Found> {
  const { key, size } = await blobs.put(Readable.from([Buffer.from('spool')]), { maxBytes: 5, claimWithinMs: 60_000 });
  await blobs.discard([key]);
  return size === 5 ? ok('Blobs can be stored and deleted.') : failed('The stored size differs from the size sent.');
}
