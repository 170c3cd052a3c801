import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { eventually, spawnNode, type SpawnedNode } from '#testing';
import { isPostmasterOf } from './embedded-postgres-process.ts';
import {
  findFreePort,
  startEmbeddedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from './embedded-postgres.ts';

// Real: PostgreSQL, processes, signals, files. Parents that die are built code, so `npm run build` comes first.

let directory: string;
let dataDir: string;
let logged: string[];
const servers: EmbeddedPostgres[] = [];
const parents: SpawnedNode[] = [];

// One directory for all tests: each must cope with the files that earlier tests left, as in production.
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-embedded-'));
  await chmod(directory, 0o755);
  dataDir = join(directory, 'postgres');
});
beforeEach(() => {
  logged = [];
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await Promise.all(parents.splice(0).map((parent) => parent.kill('SIGKILL')));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const log = (message: string): void => void logged.push(message);
  const server = await startEmbeddedPostgres({ dataDir, settings: { fsync: 'off' }, log, ...options });
  servers.push(server);
  return server;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
    return rows.flat();
  } finally {
    await client.end();
  }
}

/** Starts a process that starts the server, prints its URL and pid, and then runs the code `then`. */
async function startInProcess(then: string): Promise<{ parent: SpawnedNode; url: string; pid: number }> {
  const script = join(directory, 'parent.mjs');
  const built = join(import.meta.dirname, '../../../dist/libs/platform/embedded-postgres/embedded-postgres.js');
  await writeFile(
    script,
    `import { readFileSync } from 'node:fs';
     import { startEmbeddedPostgres } from ${JSON.stringify(built)};
     const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log: console.log });
     const pid = parseInt(readFileSync(server.dataDir + '/pgdata/postmaster.pid', 'utf8'));
     console.log('ready', server.ownerUrl, pid);
     ${then}`,
  );
  const parent = spawnNode(script);
  parents.push(parent);
  const [, url, pid] = await parent.waitForLine(/^ready (.*) (\d+)/);
  return { parent, url: url!, pid: Number(pid) };
}

const stayAlive = 'setInterval(() => undefined, 1_000);';

const isRunning = (pid: number): Promise<boolean> => isPostmasterOf(pid, join(dataDir, 'pgdata'));

it('starts a durable server on loopback only, with a database and a secret password', async () => {
  const server = await start({ settings: {} });
  expect(server).toMatchObject({ dataDir, adopted: false });
  const settings = ['fsync', 'listen_addresses', 'unix_socket_directories', 'max_connections', 'server_encoding'];
  const values = await query(server.ownerUrl, `select ${settings.map((name) => `current_setting('${name}')`).join()}`);
  expect(values).toEqual(['on', '127.0.0.1', join(dataDir, 'pgdata'), '200', 'UTF8']);
  expect(await query(server.ownerUrl, 'select current_database()')).toEqual(['spool']);

  const { password } = new URL(server.ownerUrl);
  expect(password).toHaveLength(48);
  expect((await stat(join(dataDir, 'password'))).mode & 0o777).toBe(0o600);
  await expect(query(server.ownerUrl.replace(password, 'guess'), 'select 1')).rejects.toThrow(
    'password authentication',
  );
});

it('has a Unix socket in its data directory that asks for the password, unless its path is too long', async () => {
  const { socketUrl } = await start();
  expect(await query(socketUrl!, 'select inet_server_addr() is null, current_user')).toEqual([true, 'spool_app']);
  const wrong = new URL(socketUrl!);
  await expect(query(socketUrl!.replace(wrong.password, 'guess'), 'select 1')).rejects.toThrow(
    'password authentication',
  );
  await servers.pop()?.stop();
  const far = await start({ dataDir: join(directory, 'x'.repeat(80), 'postgres') });
  expect(far.socketUrl).toBeNull();
  expect(await query(far.url, 'select current_user')).toEqual(['spool_app']);
});

it('gives processes a role with a lasting password, also in a data directory without such a role', async () => {
  const first = await start();
  const { username, password } = new URL(first.url);
  expect(username).toBe('spool_app');
  expect(await query(first.url, 'select current_user')).toEqual(['spool_app']);
  await expect(query(first.url.replace(password, 'guess'), 'select 1')).rejects.toThrow('password authentication');
  await expect(query(first.url, 'create table mine (a int)')).rejects.toThrow('permission denied');
  expect(first.url).not.toContain(new URL(first.ownerUrl).password);
  // Without the role, the data directory is like that of an earlier release.
  await query(first.ownerUrl, 'drop role spool_app');
  await first.stop();
  const second = await start();
  expect(new URL(second.url).password).toBe(password);
  expect(await query(second.url, 'select current_user')).toEqual(['spool_app']);
});

it('keeps its data after a stop, which is clean and complete', async () => {
  const first = await start();
  await query(first.ownerUrl, 'create table kept as select 42 as answer');
  const open = new Client({ connectionString: first.ownerUrl });
  open.on('error', () => undefined);
  await open.connect();
  await Promise.all([first.stop(), first.stop()]);
  await expect(query(first.ownerUrl, 'select 1')).rejects.toThrow('ECONNREFUSED');
  expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toMatch(/database system is shut down\n$/);

  const second = await start();
  expect(await query(second.ownerUrl, 'select answer from kept')).toEqual([42]);
});

it('takes over the server that a killed parent left running, and stops it', async () => {
  const { parent, url, pid } = await startInProcess(stayAlive);
  await query(url, 'create table if not exists kept as select 42 as answer');
  await parent.kill('SIGKILL');
  expect(await isRunning(pid)).toBe(true);

  const server = await start();
  expect(server).toMatchObject({ adopted: true, ownerUrl: url });
  expect(await query(server.ownerUrl, 'select answer from kept')).toEqual([42]);
  await server.stop();
  expect(await isRunning(pid)).toBe(false);
});

it('replaces a server that was left running on another port than requested', async () => {
  const { parent, pid } = await startInProcess(stayAlive);
  await parent.kill('SIGKILL');
  const port = await findFreePort();
  expect(await start({ port })).toMatchObject({ adopted: false, port });
  expect(await isRunning(pid)).toBe(false);
});

it('replaces a server that was left running and does not respond', async () => {
  const { parent, url, pid } = await startInProcess(stayAlive);
  await query(url, 'create table if not exists kept as select 42 as answer');
  await parent.kill('SIGKILL');
  process.kill(pid, 'SIGSTOP');
  const server = await start();
  expect(server.adopted).toBe(false);
  expect(await isRunning(pid)).toBe(false);
  expect(logged.join()).toContain('does not answer');
  expect(await query(server.ownerUrl, 'select answer from kept')).toEqual([42]);
});

it('refuses a directory that a live process uses, and does not touch its server', async () => {
  const { url } = await startInProcess(stayAlive);
  await expect(start()).rejects.toThrow('in use by another running process');
  expect(await query(url, 'select 1')).toEqual([1]);
});

it('starts if the process of postmaster.pid is gone or is another program', async () => {
  await (await start()).stop();
  const { uid, gid } = await stat(join(dataDir, 'pgdata'));
  // Runs as the server's user, so PostgreSQL itself would take it for a postmaster.
  const program = spawn('sleep', ['600'], process.getuid?.() === 0 ? { uid, gid } : {});
  const gone = spawnSync('true').pid;
  for (const pid of [gone, program.pid!]) {
    const content = `${pid}\n${join(dataDir, 'pgdata')}\n1700000000\n1\n\n127.0.0.1\n`;
    await writeFile(join(dataDir, 'pgdata', 'postmaster.pid'), content);
    const server = await start();
    expect(server.adopted).toBe(false);
    expect(await query(server.ownerUrl, 'select 1')).toEqual([1]);
    await server.stop();
  }
  expect(program.exitCode).toBeNull();
  program.kill();
});

it('starts after a first start was killed half-way', async () => {
  await rename(join(dataDir, 'pgdata'), join(dataDir, 'pgdata.new-1'));
  const server = await start();
  expect(await query(server.ownerUrl, 'select 1')).toEqual([1]);
});

it('the error for a requested port in use names the port and the reason', async () => {
  const taken = createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  await expect(start({ port })).rejects.toThrow(new RegExp(`port ${port}.*Address already in use`, 's'));
  taken.close();
});

it('gives two servers two ports', async () => {
  const [one, other] = await Promise.all([start(), start({ dataDir: join(directory, 'other') })]);
  expect(one.port).not.toBe(other.port);
});

it.each([
  ['has nothing left to do', ''],
  ['calls process.exit', 'process.exit(0);'],
  ['dies of an error', 'throw new Error("planted");'],
])('ends with its process when the process %s', async (_, then) => {
  const { parent, pid } = await startInProcess(then);
  await parent.exited;
  await eventually(async () => !(await isRunning(pid)), { what: 'the server has ended' });
});

it('survives a Ctrl-C until its process has drained', async () => {
  const drain = `process.once('SIGINT', async () => {
      const { default: pg } = await import(${JSON.stringify(require.resolve('pg'))});
      const client = new pg.Client({ connectionString: server.ownerUrl });
      await client.connect();
      console.log('drained', (await client.query('select 42 as answer')).rows[0].answer);
      await client.end();
      await server.stop();
      process.exit(0);
    });`;
  const { parent, pid } = await startInProcess(drain + stayAlive);
  // A terminal signals all processes of the parent's group. The parent shares ours, so the server must have another.
  const group = spawnSync('ps', ['-o', 'pgid=', '-p', String(pid)])
    .stdout.toString()
    .trim();
  expect(Number(group)).toBe(pid);
  parent.signal('SIGINT');
  await parent.waitForLine(/^drained 42/);
  expect(await parent.exited).toEqual({ code: 0, signal: null });
  expect(await isRunning(pid)).toBe(false);
});
