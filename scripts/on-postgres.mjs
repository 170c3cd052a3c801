/**
 * Runs Jest on a private PostgreSQL of one version: `node scripts/on-postgres.mjs 15 [arguments of Jest]`. Without
 * arguments it runs integration tests that together send the statements of each library, and the drill of a restore. The
 * server does not sync its files. They are deleted at the end.
 *
 * The embedded PostgreSQL of libs/platform does not fit: it needs built-in locales, and PostgreSQL 15 has none.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { memoryFolder } from '../libs/testing/memory-folder.mjs';
import { jestArguments, postgresFolder, root } from './platforms.mjs';

/** Integration tests that send SQL, and the drill of a restore. The others send the same statements, or none. */
const SENDING_SQL = [
  'apps/api/(access|events|list-plans|policy-queries)\\.int',
  'apps/api/admin/(agents|confirmations|overview|run-timeline|thread-content|threads|tokens)\\.int',
  'apps/api/files/files\\.int',
  'apps/worker/housekeeping\\.int',
  'libs/access/(authenticator|operator-sessions)\\.int',
  'libs/(admin|event-store|projections)/.*\\.int',
  'libs/agents/(agent-catalogue|readiness)\\.int',
  'libs/files/verify-files\\.int',
  'libs/live/bus\\.int',
  'libs/platform/policy/policy-versions\\.int',
  'libs/run-engine/(concurrency|reaper|run-engine|steps|transcript-bounds)\\.int',
  'libs/run-queue/(dispatcher|installation-metrics|run-queue)\\.int',
  'test/operations/backup\\.e2e',
];

const [major, ...given] = process.argv.slice(2);
const args = jestArguments(given, ['--selectProjects', 'int', 'operations', '--testPathPatterns', ...SENDING_SQL]);

const directories = [tmpdir(), memoryFolder()].map((parent) => mkdtempSync(join(parent, `spool-postgres-${major}-`)));
const [directory, dataDirectory] = directories;
let server;
try {
  server = await start();
  console.error(`PostgreSQL ${await version(server.url)}`);
  const env = { ...process.env, DATABASE_URL: server.url };
  const jest = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env });
  // Passes the signal on, so that Jest ends before the server.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => jest.kill(signal));
  const [status] = await once(jest, 'exit');
  process.exitCode = status ?? 1;
} finally {
  await server?.stop();
  for (const one of directories) rmSync(one, { recursive: true, force: true });
}

async function start() {
  for (const one of directories) chmodSync(one, 0o755);
  // PostgreSQL does not run as root, and another user may not have access to node_modules.
  const programs = join(directory, 'native');
  cpSync(postgresFolder(major), programs, { recursive: true, verbatimSymlinks: true });
  const data = join(dataDirectory, 'data');
  mkdirSync(data, { mode: 0o700 });
  const user = process.getuid() === 0 ? ordinaryUser() : {};
  if (user.uid !== undefined) chownSync(data, user.uid, user.gid);
  const options = { ...user, cwd: '/', env: { LC_ALL: 'C', PATH: process.env.PATH }, stdio: 'ignore' };
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'];
  execFileSync(join(programs, 'bin', 'initdb'), initdb, options);

  const port = await freePort();
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' };
  Object.assign(settings, { full_page_writes: 'off', synchronous_commit: 'off', max_connections: 200 });
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(programs, 'bin', 'postgres'), ['-D', data, ...flags], options);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  while (!(await version(url).catch(() => null))) {
    const status = child.exitCode ?? child.signalCode;
    if (status !== null) throw new Error(`PostgreSQL ${major} exited with ${status} at start.`);
    await delay(50);
  }
  const stop = () => {
    child.kill('SIGINT'); // ends open sessions without waiting for them
    return ended;
  };
  return { url, stop };
}

function ordinaryUser() {
  const id = (flag) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

async function version(connectionString) {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 1_000 });
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query('show server_version');
  await client.end();
  return rows[0].server_version;
}
