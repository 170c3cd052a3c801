import { existsSync } from 'node:fs';
import { chown, copyFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { eventually } from '#testing';
import { sharedFolder, testSandbox } from './mcp-servers.testing.ts';
import { startServer } from './server-process.ts';
import type { SandboxOptions } from './sandbox.ts';

const isRoot = process.getuid?.() === 0;
const NOBODY = { uid: 65_534, gid: 65_534 };

/** Runs a script of the shell in the sandbox; returns how it ended and what it wrote. */
async function run(script: string, options: Partial<SandboxOptions> = {}, env: Record<string, string> = {}) {
  const program = { command: '/bin/sh', args: ['-c', script], env, network: false };
  const child = startServer(await testSandbox(options).launch(program));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += String(piece)));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

const node = (script: string): string => `exec ${process.execPath} -e ${JSON.stringify(script)}`;

it('limits memory, files, and what a file may hold', async () => {
  const memory = await run(node(`const all = []; for (;;) all.push(Buffer.alloc(64 << 20, 1));`));
  expect(memory.code).not.toBe(0);
  expect(memory.output).toMatch(/out of memory|allocation failed|bad_alloc|ERR_MEMORY/i);
  const limits = await run('ulimit -n; ulimit -t; ulimit -c; chrt -p $$ | head -1');
  const output = expect.stringMatching(/^1024\n600\n0\npid .* SCHED_IDLE\n$/) as string;
  expect(limits).toEqual({ code: 0, output });
  expect(await run('chrt --other 0 true')).not.toMatchObject({ code: 0 });
  expect(await run('head -c 300000000 /dev/zero > /tmp/file')).not.toMatchObject({ code: 0 });
});

it('ends a program that has used its CPU time', async () => {
  const { code } = await run('while :; do :; done', { cpuSeconds: 1 });
  // SIGKILL, as the shell tells it.
  expect(code).toBe(137);
});

it('limits the files that a process has open', async () => {
  const open = 'for (;;) all.push(fs.openSync("/dev/null"))';
  const { output } = await run(
    node(`const all = []; try { ${open} } catch ({ code }) { console.log(code, all.length) }`),
  );
  const [code, count] = output.trim().split(' ');
  expect(code).toBe('EMFILE');
  expect(Number(count)).toBeGreaterThan(900);
  expect(Number(count)).toBeLessThan(1_024);
});

it('lets the kernel kill programs before the worker', async () => {
  expect((await run('cat /proc/self/oom_score_adj', {})).output).toBe('1000\n');
});

it('limits processes', async () => {
  const { output } = await run('i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done 2>&1', { folders: [] });
  expect(output).toMatch(/fork/i);
  expect((await run('ulimit -p', { folders: [] })).output).toBe('64\n');
});

it('starts a program with less priority where there is no chrt, and none without prlimit', async () => {
  const programs = sharedFolder();
  await expect(run('true', { programs })).rejects.toThrow('need the program prlimit');
  expect((await testSandbox({ programs }).report()).refused).toContain('need the program prlimit');
  await symlink('/usr/bin/prlimit', join(programs, 'prlimit'));
  await symlink('/usr/bin/nice', join(programs, 'nice'));
  expect(await run('nice', { programs })).toEqual({ code: 0, output: '19\n' });
  await rm(programs, { recursive: true });
});

/** Opens files for writing, and does not write. */
const OPENED = ['sys/kernel/core_pattern', 'sys/kernel/modprobe', 'sys/vm/swappiness', 'sysrq-trigger', 'pressure/cpu'];
const OPEN = `for file in ${OPENED.join(' ')}; do (: >> /proc/$file) 2> /dev/null && echo $file; done; id -u`;

it('opens nothing of /proc for writing that changes the machine, and is not root', async () => {
  expect((await run(OPEN)).output).toBe(`${isRoot ? NOBODY.uid : process.getuid?.()}\n`);
  if (!isRoot) return;
  // The mounts alone are enough, even for root: this one is not started like that by any setting.
  const asRoot = { user: { uid: 0, gid: 0 } };
  expect((await run(OPEN, asRoot)).output).toBe('0\n');
});

it('gives variables to the program alone, and no capability', async () => {
  // Outside of the sandbox this variable would have bubblewrap load something.
  const { code, output } = await run(
    'echo $GIVEN; grep CapEff /proc/self/status; echo $HOME',
    {},
    { GIVEN: 'a b', LD_PRELOAD: '' },
  );
  expect({ code, output }).toEqual({ code: 0, output: 'a b\nCapEff:\t0000000000000000\n/tmp\n' });
});

it('starts a program in the directory of the worker if it sees a folder in it', async () => {
  const seen = [{ path: join(process.cwd(), 'examples'), writable: false }];
  expect((await run('pwd; ls', { folders: seen })).output).toBe(`${process.cwd()}\nexamples\n`);
  expect((await run('pwd', { folders: [] })).output).toBe('/tmp\n');
});

it('lets a program write only where it may', async () => {
  const folder = sharedFolder();
  const script = (where: string): string => `echo x > ${where}/x && cat ${where}/x`;
  const readOnly = [{ path: folder, writable: false }];
  expect((await run(script(folder), { folders: readOnly })).code).not.toBe(0);
  expect(await run(script(folder), { folders: [{ path: folder, writable: true }] })).toEqual({
    code: 0,
    output: 'x\n',
  });
  // What belongs to the service is empty there.
  expect(await run(`ls ${folder}`, { folders: [{ path: tmpdir(), writable: false }], hidden: [folder] })).toEqual({
    code: 0,
    output: '',
  });
  for (const place of ['/usr', '/', '/dev', '/etc']) expect((await run(script(place))).code).not.toBe(0);
  await rm(folder, { recursive: true });
});

describe('a program outside of the folders', () => {
  let folder: string;
  beforeEach(() => (folder = sharedFolder()));
  afterEach(() => rm(folder, { recursive: true }));
  const start = async (command: string) => {
    const program = { command, args: ['-c', 'echo started'], env: {}, network: false };
    const child = startServer(await testSandbox({ folders: [] }).launch(program));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += String(piece)));
    await new Promise((resolve) => child.once('close', resolve));
    return output;
  };

  it('starts by a link that leads to a program of the system', async () => {
    await symlink('/bin/sh', join(folder, 'shell'));
    expect(await start(join(folder, 'shell'))).toBe('started\n');
  });

  (isRoot ? it : it.skip)('starts by a link below /usr', async () => {
    const link = `/usr/local/bin/${basename(folder)}`;
    await copyFile('/bin/sh', join(folder, 'shell'));
    await symlink(join(folder, 'shell'), link);
    try {
      expect(await start(link)).toBe('started\n');
    } finally {
      await rm(link);
    }
  });
});

describe('secrets of the service below the folders of programs', () => {
  let folder: string;
  beforeEach(() => (folder = sharedFolder()));
  afterEach(() => rm(folder, { recursive: true }));
  const sandbox = (hidden: string) => testSandbox({ folders: [{ path: folder, writable: false }], hidden: [hidden] });

  it('are refused at the start if they are files, also behind a link, which a rotation replaces', async () => {
    const secret = join(folder, 'secret');
    await writeFile(secret, 'x');
    const message = `Wrong configuration: TOOL_SERVER_FOLDERS: ${folder} holds the secret ${secret}; move it`;
    const refused = { name: 'ConfigError', message };
    await expect(sandbox(secret).report()).rejects.toMatchObject(refused);
    await mkdir(join(folder, 'v1'));
    await rename(secret, join(folder, 'v1/secret'));
    await symlink('v1', join(folder, 'current'));
    await expect(sandbox(join(folder, 'current/secret')).report()).rejects.toMatchObject({ name: 'ConfigError' });
    await expect(sandbox(join(folder, 'current')).report()).rejects.toMatchObject({ name: 'ConfigError' });
    await expect(sandbox(join(folder, 'v1')).report()).resolves.toMatchObject({ refused: null });
  });

  it('are hidden if the service has yet to create their folder', async () => {
    const own = join(folder, 'data');
    const script = `ls ${folder}; sleep 1; cat ${own}/x`;
    const options = { folders: [{ path: folder, writable: false }], hidden: [own], ownFolders: [own] };
    const running = run(script, options);
    await eventually(() => existsSync(own), { what: 'the folder is there' });
    await writeFile(join(own, 'x'), 'seen');
    expect((await running).output).toMatch(/^data\n.*No such file/);
  });
});

if (!isRoot)
  process.stderr.write('TOOL_SERVER_ISOLATION=user is not tested: only root can start programs as others.\n');

(isRoot ? describe : describe.skip)('TOOL_SERVER_ISOLATION=user', () => {
  const asUser = (script: string, env = {}) => run(script, { isolation: 'user', user: NOBODY }, env);

  it('starts a program as another user, without groups and capabilities', async () => {
    const told = await asUser('id -u; id -G; grep CapEff /proc/self/status; pwd');
    const nobody = String(NOBODY.uid);
    expect(told).toEqual({ code: 0, output: `${nobody}\n${nobody}\nCapEff:\t0000000000000000\n/\n` });
  });

  it('keeps a program from the variables, memory, open files and private files of the worker', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'spool-sandbox-'));
    await writeFile(join(folder, 'secret'), 'x', { mode: 0o600 });
    const worker = `/proc/${process.pid}`;
    for (const place of [`${worker}/environ`, `${worker}/mem`, `${worker}/fd/0`, join(folder, 'secret')]) {
      const { code, output } = await asUser(`head -c 1 ${place}`);
      expect({ place, code, isDenied: output.includes('Permission denied') }).toEqual({
        place,
        code: 1,
        isDenied: true,
      });
    }
    await rm(folder, { recursive: true });
  });

  it('gives a program its own variables only, and the limits', async () => {
    const { output } = await asUser('env | cut -d= -f1 | sort; ulimit -n; ulimit -t; ulimit -d', { GIVEN: 'a' });
    expect(output.split('\n').filter((line) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(line))).toEqual([
      ...['GIVEN', 'HOME', 'PATH', '1024', '600', String(1024 * 1024), ''],
    ]);
  });
});

(isRoot ? it : it.skip)('refuses TOOL_SERVER_ISOLATION=user with a user that owns data of the service', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'spool-sandbox-'));
  await chown(folder, NOBODY.uid, NOBODY.gid);
  const { refused } = await testSandbox({ isolation: 'user', user: NOBODY, hidden: [folder] }).report();
  expect(refused).toBe(`The user of TOOL_SERVER_USER owns ${folder} of the service; set another one.`);
  await rm(folder, { recursive: true });
});

it('reports what does not hold', async () => {
  expect((await testSandbox({ isolation: 'none' }).report()).warnings[0]).toContain('can read all secrets');
  expect((await testSandbox({ isolation: 'user' }).report()).refused).toContain('TOOL_SERVER_USER');
  const shared = await testSandbox({ isolation: 'user', user: NOBODY }).report();
  expect(shared.warnings[0]).toContain('tool servers of all organizations share a user and can read each other');
  expect((await testSandbox().report()).refused).toBeNull();
  jest.spyOn(process, 'getuid').mockReturnValue(1_000);
  const byOrdinaryUser = await testSandbox({ isolation: 'user', user: NOBODY }).report();
  jest.restoreAllMocks();
  expect(byOrdinaryUser.refused).toContain('runs as root');
});
