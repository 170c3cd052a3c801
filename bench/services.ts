import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { startEmbeddedPostgres } from '#platform';
import { migrateInstallation } from '#run-queue';
import type { Defer } from './clean-up.ts';

const LOCAL_POSTGRES = 'postgres://postgres@127.0.0.1:5432/postgres';
const LOCAL_REDIS = 'redis://127.0.0.1:6379';

/** PostgreSQL and Redis with databases and key names of this run's own, gone with `close`. */
export interface Services {
  /** Null where there is none. */
  redisUrl: string | null;
  /** Makes a name that no other run has, for queues and channels. */
  newName(): string;
  /** Creates a database with Spool's tables, and drops it at the end. Returns its URL with the role of processes. */
  newDatabase(defer: Defer): Promise<string>;
  /** Returns the URL of the database with the role of its owner. */
  ownerUrlOf(url: string): string;
  /** Runs statements that processes may not run, with the owner of the database. */
  asOwner(url: string, statements: string): Promise<void>;
  /** Creates a database, runs the statement in it, and drops it at the end. Returns its URL. */
  newPlainDatabase(defer: Defer, schema: string): Promise<string>;
  /** What the figures depend on, for the first line of the report. */
  describe(): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/** Those of DATABASE_URL and REDIS_URL, else the local servers, else an embedded PostgreSQL and no Redis. */
export async function openServices(): Promise<Services> {
  const redisUrl = process.env['REDIS_URL'] || (await redisAt(LOCAL_REDIS));
  const server = await openPostgres();
  const prefix = `spool-bench-${process.pid}-`;
  const databases = new Set<string>();
  let names = 0;
  const newName = (): string => `${prefix}${++names}`;
  const drop = async (url: string): Promise<void> => {
    await ask(server.url, `drop database if exists ${databaseOf(url)} with (force)`);
    databases.delete(url);
  };
  const create = async (template: string | null, defer: Defer): Promise<string> => {
    const url = new URL(server.url);
    url.pathname = newName().replaceAll('-', '_');
    databases.add(url.href);
    const from = template === null ? '' : ` template ${databaseOf(template)}`;
    await ask(server.url, `create database ${databaseOf(url.href)}${from}`);
    defer(() => drop(url.href));
    return url.href;
  };
  const role = `spool_bench_${process.pid}`;
  const asApp = (url: string): string => withUser(url, role);
  const ownerUrlOf = (url: string): string => withUser(url, new URL(server.url).username);
  // Migrates a template once, because a copy takes only milliseconds.
  let migrated: Promise<string> | null = null;
  const migrateTemplate = async (): Promise<string> => {
    const url = await create(null, () => undefined);
    await migrateInstallation({ ownerUrl: url, appUrl: asApp(url), queueUrl: redisUrl ?? undefined });
    return url;
  };
  return {
    redisUrl,
    newName,
    newDatabase: async (defer) => asApp(await create(await (migrated ??= migrateTemplate()), defer)),
    ownerUrlOf,
    asOwner: async (url, statements) => void (await ask(ownerUrlOf(url), statements)),
    newPlainDatabase: async (defer, schema) => {
      const url = await create(null, defer);
      await ask(url, schema);
      return url;
    },
    describe: async () => ({ ...(await describeServer(server.url)), ...(redisUrl && (await describeRedis(redisUrl))) }),
    close: async () => {
      for (const url of databases) await drop(url);
      await ask(server.url, `drop role if exists ${role}`);
      if (redisUrl !== null) await deleteKeys(redisUrl, `*${prefix}*`);
      await server.stop();
    },
  };
}

async function openPostgres(): Promise<{ url: string; stop: () => Promise<void> }> {
  const given = process.env['DATABASE_URL'];
  if (given) return { url: given, stop: () => Promise.resolve() };
  const isThere = await ask(LOCAL_POSTGRES, 'select 1').then(
    () => true,
    () => false,
  );
  if (isThere) return { url: LOCAL_POSTGRES, stop: () => Promise.resolve() };
  const directory = await mkdtemp(join(tmpdir(), 'spool-bench-postgres-'));
  const server = await startEmbeddedPostgres({
    dataDir: directory,
    log: (message) => process.stderr.write(`${message}\n`),
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    for (const left of [server.dataDir, directory]) await rm(left, { recursive: true, force: true });
  };
  return { url: server.ownerUrl, stop };
}

/** The password stays: the role of processes gets that of the owner. */
const withUser = (url: string, username: string): string => Object.assign(new URL(url), { username }).href;

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);

async function ask<Row extends object>(url: string, statement: string): Promise<Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}

async function describeServer(url: string): Promise<Record<string, string>> {
  const names = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers'];
  const rows = await ask<{ name: string; value: string }>(
    url,
    `select name, current_setting(name) as value from pg_settings where name in ('${names.join(`', '`)}')`,
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

async function describeRedis(url: string): Promise<{ redis_version: string }> {
  const info = await withRedis(url, (redis) => redis.info('server'));
  return { redis_version: /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown' };
}

async function redisAt(url: string): Promise<string | null> {
  return withRedis(url, (redis) => redis.ping()).then(
    () => url,
    () => null,
  );
}

async function deleteKeys(url: string, pattern: string): Promise<void> {
  await withRedis(url, async (redis) => {
    for await (const keys of redis.scanStream({ match: pattern, count: 1_000 })) {
      if ((keys as string[]).length > 0) await redis.unlink(...(keys as string[]));
    }
  });
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined); // told by the rejected call
  try {
    await redis.connect();
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}
