import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { preparePostgresHome, type PostgresHome } from './embedded-postgres-home.ts';
import {
  endServer,
  findRunningServer,
  isPostmasterOf,
  serverEnv,
  signalServer,
  spawnServer,
  type ServerProcess,
} from './embedded-postgres-process.ts';

const run = promisify(execFile);

export interface EmbeddedPostgresOptions {
  /** The wanted data directory. Under root it may be another one: see `dataDir` of the result. */
  dataDir: string;
  /** Default: a free port, a different one at each start. */
  port?: number;
  /** Additional server settings. Durability is PostgreSQL's default unless they change it. */
  settings?: Record<string, string>;
  /** The user of the server if this process runs as root. */
  systemUser?: string;
  log: (message: string) => void;
}

export interface EmbeddedPostgres {
  /** The URL of the database `spool` with the role of processes. The role has no rights until `migrateInstallation`. */
  url: string;
  /** The URL of the same database and role over a Unix socket, which saves the work of TCP; null if the server has none. */
  socketUrl: string | null;
  /** The URL of the same database with its superuser, the owner of the tables. */
  ownerUrl: string;
  dataDir: string;
  port: number;
  /** Whether the server was left running by a process that is gone. */
  adopted: boolean;
  stop(): Promise<void>;
}

const owner = 'postgres';
const app = 'spool_app';
const database = 'spool';
const maxStartAttempts = 5;
/** A server that reports "starting up" may replay its log for long. A silent server is given up sooner. */
const recoveryTimeoutMs = 120_000;
const silenceOfStartedMs = 30_000; // for a slow machine under load; a failed start ends its process and is noticed immediately
const silenceOfFoundMs = 3_000;
const shutdownTimeoutMs = 60_000;
/** The lock of a killed owner is free as soon as the server has noticed its closed connection. */
const ownerGoneTimeoutMs = 2_000;

/**
 * Starts the PostgreSQL that comes with npm on `dataDir`, or takes over the server that a killed process left running there. The
 * server is a separate process. `stop()` ends it, and so does the normal end of this process.
 *
 * A process owns the server while one of its connections holds an advisory lock. So a second process on the same directory is
 * refused, and the death of an owner is noticed without a pid file.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const home = await preparePostgresHome(options.dataDir, options.systemUser ?? 'postgres', options.log);
  const password = await readOrMakePassword(home);
  await initialise(home, password, options.settings?.['fsync'] === 'off');

  for (let attempt = 1; ; attempt++) {
    const adopted = await adopt(home, password, options);
    if (adopted) return own(home, password, adopted, options, true);
    try {
      return await own(home, password, await start(home, password, options), options, false);
    } catch (error) {
      const isWorthAnotherTry = error instanceof StartRaceError && attempt < maxStartAttempts;
      if (!isWorthAnotherTry) throw error;
    }
  }
}

/** Another process took the port or the directory between our check and PostgreSQL's. */
class StartRaceError extends Error {}

interface ConnectedServer extends ServerProcess {
  client: Client;
}

const urlOf = (password: string, port: number, databaseName: string, user = owner): string =>
  `postgres://${user}:${password}@127.0.0.1:${port}/${databaseName}`;

/** Derives the password from the superuser's without revealing it, so data directories of earlier releases need no new file. */
const appPassword = (password: string): string => createHmac('sha256', password).update(app).digest('hex');

async function readOrMakePassword(home: PostgresHome): Promise<string> {
  const file = join(home.dir, 'password');
  const isNew = await stat(join(home.pgdata, 'PG_VERSION')).then(
    () => false,
    () => true,
  );
  // Every user of the machine can connect to loopback. A password in a file of mode 0600 keeps the others out.
  // Exclusive, because two first starts may be concurrent.
  if (isNew) {
    const password = randomBytes(24).toString('hex');
    await writeFile(file, password, { mode: 0o600, flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new Error(
      `cannot read ${file}, which holds the password of the database in the same folder; check its permissions`,
      { cause },
    );
  });
}

/** Runs initdb in a directory of another name, so that the rest of a killed run is never taken for a database. */
async function initialise(home: PostgresHome, password: string, isVolatile: boolean): Promise<void> {
  if (await stat(home.pgdata).catch(() => undefined)) return;
  const unfinished = `${home.pgdata}.new-${process.pid}`;
  const passwordFile = join(home.dir, `password.new-${process.pid}`);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if ('uid' in home.runAs) {
    await chown(unfinished, home.runAs.uid, home.runAs.gid);
    await chown(passwordFile, home.runAs.uid, home.runAs.gid);
  }
  await chmod(unfinished, 0o700);
  // Builtin C.UTF-8 sorts text equally everywhere, independent of the locales of the machine.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const auth = ['--auth=scram-sha-256', `--username=${owner}`, `--pwfile=${passwordFile}`];
  const sync = isVolatile ? ['--no-sync'] : [];
  const flags = ['-D', unfinished, ...locale, ...auth, ...sync, '--no-instructions'];
  try {
    await run(join(home.binDir, 'initdb'), flags, { cwd: home.dir, env: serverEnv(), ...home.runAs });
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(unfinished, home.pgdata).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // those: another process was faster
    await rm(unfinished, { recursive: true, force: true });
  });
}

async function adopt(
  home: PostgresHome,
  password: string,
  { port, log }: EmbeddedPostgresOptions,
): Promise<ConnectedServer | undefined> {
  const server = await findRunningServer(home.pgdata);
  if (!server) return undefined;
  const isAlive = (): Promise<boolean> => isPostmasterOf(server.pid, home.pgdata);
  const client = await connect(home, password, server.port, isAlive, silenceOfFoundMs);
  if (client) {
    await takeOwnership(client, home);
    if (port === undefined || port === server.port) {
      log(`PostgreSQL (pid ${server.pid}, port ${server.port}) was left running on ${home.dir}; taking it over`);
      return { ...server, client };
    }
  }
  log(
    `PostgreSQL (pid ${server.pid}) was left running on ${home.dir} and ${client ? 'has another port' : 'does not answer'}; stopping it`,
  );
  await endServer(server, home.pgdata, client ? shutdownTimeoutMs : silenceOfFoundMs, log);
  await client?.end().catch(() => undefined);
  return undefined;
}

async function start(
  home: PostgresHome,
  password: string,
  { port, settings, log }: EmbeddedPostgresOptions,
): Promise<ConnectedServer> {
  const server = await spawnServer(home, port ?? (await findFreePort()), {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: socketFolder(home) ?? '',
    max_connections: '200',
    timezone: 'UTC',
    ...settings,
  });
  const client = await connect(home, password, server.port, () => !server.hasExited(), silenceOfStartedMs);
  if (!client) {
    const said = await server.logSinceStart();
    if (!server.hasExited()) await endServer(server, home.pgdata, silenceOfStartedMs, log);
    const message = `PostgreSQL did not start on ${home.pgdata}, port ${server.port}. Its output:\n${said}`;
    const isPortTaken = said.includes('could not bind') && port === undefined;
    throw isPortTaken || said.includes('lock file "postmaster.pid"') ? new StartRaceError(message) : new Error(message);
  }
  await takeOwnership(client, home);
  return { pid: server.pid, port: server.port, client };
}

/** The most bytes that the path of a Unix socket can have: 107 on Linux, 103 on macOS. */
const maxSocketPath = 103;

/**
 * Returns the folder of the server's Unix socket: the data directory, which only its user can enter. Null if the path is too long
 * or has characters with a meaning in the setting.
 */
function socketFolder({ pgdata }: PostgresHome): string | null {
  const isPlain = /^\/[\w./-]+$/.test(pgdata);
  return isPlain && Buffer.byteLength(join(pgdata, '.s.PGSQL.65535')) <= maxSocketPath ? pgdata : null;
}

async function own(
  home: PostgresHome,
  password: string,
  { client, ...server }: ConnectedServer,
  { log }: EmbeddedPostgresOptions,
  adopted: boolean,
): Promise<EmbeddedPostgres> {
  let isExpectedToEnd = false;
  const endWithUs = (): void => signalServer(server.pid, 'SIGINT');
  process.once('exit', endWithUs);
  client.once('end', () => {
    process.off('exit', endWithUs); // from now on the pid may be another program's
    if (!isExpectedToEnd) log(`PostgreSQL closed its connection unexpectedly; see ${join(home.dir, 'postgres.log')}`);
  });

  const stopOnce = async (): Promise<void> => {
    isExpectedToEnd = true;
    // The lock is released only with the end of the server, so that no process adopts a server that is about to end.
    await endServer(server, home.pgdata, shutdownTimeoutMs, log);
    await client.end().catch(() => undefined);
  };
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= stopOnce());

  let withSocket: boolean;
  try {
    await createDatabase(client, appPassword(password));
    withSocket = await hasSocket(client, home);
  } catch (error) {
    await stop();
    throw error;
  }
  (client as Client & { unref(): void }).unref(); // it must not keep a process alive that has nothing left to do
  const ownerUrl = urlOf(password, server.port, database);
  const url = urlOf(appPassword(password), server.port, database, app);
  const socketUrl = withSocket ? socketUrlOf(url, home.pgdata) : null;
  return { url, socketUrl, ownerUrl, dataDir: home.dir, port: server.port, adopted, stop };
}

/** Servers that earlier releases started have no socket. */
async function hasSocket(client: Client, { pgdata }: PostgresHome): Promise<boolean> {
  const { rows } = await client.query<{ folder: string }>(
    `select current_setting('unix_socket_directories') as folder`,
  );
  return rows[0]?.folder === pgdata;
}

const socketUrlOf = (url: string, folder: string): string => url.replace('127.0.0.1', encodeURIComponent(folder));

async function createDatabase(client: Client, secret: string): Promise<void> {
  const found = await client.query('select from pg_database where datname = $1', [database]);
  if (found.rowCount === 0) await client.query(`create database ${database}`);
  const role = await client.query('select from pg_roles where rolname = $1', [app]);
  if (role.rowCount === 0) await client.query(`create role ${app} login password '${secret}'`);
}

/** Waits until the server of this home responds on that port. Returns undefined if it ends or stays silent. */
async function connect(
  home: PostgresHome,
  password: string,
  port: number,
  isAlive: () => boolean | Promise<boolean>,
  silenceTimeoutMs: number,
): Promise<Client | undefined> {
  const startedAt = Date.now();
  let lastSignOfLifeAt = startedAt;
  while (Date.now() - startedAt < recoveryTimeoutMs && Date.now() - lastSignOfLifeAt < silenceTimeoutMs) {
    if (!(await isAlive())) return undefined;
    const client = new Client({ connectionString: urlOf(password, port, 'postgres'), connectionTimeoutMillis: 1_000 });
    client.on('error', () => undefined); // reported by 'end'
    try {
      await client.connect();
      // While our server fails to bind a port in use, the response may come from the other server on that port.
      const { rows } = await client.query<{ dir: string }>(`select current_setting('data_directory') as dir`);
      if (rows[0]?.dir === home.pgdata) return client;
      await client.end();
    } catch (error) {
      await client.end().catch(() => undefined);
      if ((error as { code?: string }).code === '57P03') lastSignOfLifeAt = Date.now(); // "starting up", "shutting down"
    }
    await delay(10);
  }
  return undefined;
}

async function takeOwnership(client: Client, home: PostgresHome): Promise<void> {
  const deadline = Date.now() + ownerGoneTimeoutMs;
  do {
    const { rows } = await client.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(hashtext('spool embedded postgres')) as locked`,
    );
    if (rows[0]?.locked) return;
    await delay(20);
  } while (Date.now() < deadline);
  await client.end();
  throw new Error(`the database in ${home.dir} is in use by another running process; stop that one first`);
}

/** Below the ephemeral ports (Linux: from 32768), which systems assign to outgoing connections and to port 0. */
const freePorts = { from: 20_000, to: 32_000 };
const maxPortAttempts = 100;
/** Ports that were returned before. Two searches at the same time must not find the same one, nor probe where a server starts. */
const foundPorts = new Set<number>();

/** Returns a port of 127.0.0.1 that is free and not ephemeral, each port only once. Rejects if none is found. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = freePorts.from + Math.floor(Math.random() * (freePorts.to - freePorts.from));
    if (foundPorts.has(port) && attempt < maxPortAttempts) continue;
    foundPorts.add(port);
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
      return port;
    } catch (error) {
      if (attempt >= maxPortAttempts) throw error;
    } finally {
      await new Promise((resolve) => probe.close(resolve));
    }
  }
}
