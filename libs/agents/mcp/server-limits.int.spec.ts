import { existsSync } from 'node:fs';
import { eventually } from '#testing';
import {
  callTool,
  closeAll,
  contextOf,
  oddServer,
  openServers,
  testSandbox,
  failedCall,
} from './mcp-servers.testing.ts';
import { memoryOf, readProcesses, treeOf } from './process-tree.ts';
import { CpuCount, watchServer, type ServerLimitExceeded } from './server-watch.ts';
import { signalServer, startServer, type ServerProcess } from './server-process.ts';

// Real: programs under bubblewrap, whose processes stay below the limit of each.

const MEBIBYTE = 1024 * 1024;
const PYTHON = '/usr/bin/python3';
const running = new Set<ServerProcess>();

afterEach(async () => {
  for (const child of running) signalServer(child, 'SIGKILL');
  running.clear();
  await closeAll();
});

/** Starts a program in the sandbox under the watch; returns what exceeded a limit, as long as it runs. */
async function watch(command: string, args: string[], limits: { memoryBytes: number; cpuMs: number }) {
  const sandbox = testSandbox({ memoryBytes: limits.memoryBytes, folders: [] });
  const launch = await sandbox.launch({ command, args, env: {}, network: false });
  const child = startServer(launch);
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += String(piece)));
  let error: ServerLimitExceeded | null = null;
  const end = watchServer(child.pid!, limits, (found) => (error = found));
  child.once('exit', end);
  const memory = async (): Promise<number> => {
    const tree = treeOf(child.pid!, await readProcesses());
    return memoryOf(
      tree.map(({ pid }) => pid),
      limits.memoryBytes,
    );
  };
  return { error: () => error, output: () => output, memory };
}

/** Two children, which touch so much memory each. */
const twoChildren = (mebibytes: number): string => `
  const { spawn } = require('node:child_process');
  const script = 'a = Buffer.alloc(${mebibytes} << 20, 1); console.log("ready"); setInterval(() => {}, 1e6)';
  for (let i = 0; i < 2; i++) spawn(process.execPath, ['-e', script], { stdio: 'inherit' });
`;

const ready = (output: string): number => output.match(/ready/g)?.length ?? 0;

describe('the memory of a server', () => {
  const limits = { memoryBytes: 500 * MEBIBYTE, cpuMs: 600_000 };
  const reached = { message: `The tool server used more than ${limits.memoryBytes} bytes of memory.` };

  it('is that of its processes together', async () => {
    const { error } = await watch(process.execPath, ['-e', twoChildren(300)], limits);
    expect(await eventually(error, { what: 'the limit is exceeded' })).toMatchObject(reached);
  });

  it('does not count programs that its processes share', async () => {
    const many = twoChildren(40).replace('i < 2', 'i < 3');
    const { error, output, memory } = await watch(process.execPath, ['-e', many], limits);
    await eventually(() => ready(output()) === 3, { what: 'they have it' });
    expect(await memory()).toBeLessThan(limits.memoryBytes);
    expect(error()).toBeNull();
  });

  if (!existsSync(PYTHON)) process.stderr.write('Shared memory of tool servers is not tested: there is no python3.\n');
  const withPython = existsSync(PYTHON) ? it : it.skip;

  // RLIMIT_DATA does not count it.
  const shared = (mebibytes: number): string => `
import mmap, os, time
shared = mmap.mmap(-1, ${mebibytes} << 20)
for at in range(0, len(shared), 4096): shared[at] = 1
os.fork()
for at in range(0, len(shared), 4096): shared[at] = 2
print("ready", flush=True)
time.sleep(1000)
`;

  withPython('includes shared memory', async () => {
    const { error } = await watch(PYTHON, ['-c', shared(600)], limits);
    expect(await eventually(error, { what: 'the limit is exceeded' })).toMatchObject(reached);
  });

  withPython('counts memory once that two processes share', async () => {
    const { error, output, memory } = await watch(PYTHON, ['-c', shared(350)], limits);
    await eventually(() => ready(output()) === 2, { what: 'both have it' });
    expect(await memory()).toBeLessThan(limits.memoryBytes);
    expect(error()).toBeNull();
  });
});

describe('the CPU time of a server', () => {
  it('is that of its processes together, also of those that have ended', async () => {
    const spin = 'const end = Date.now() + 300; while (Date.now() < end);';
    const again = `const { spawnSync } = require('node:child_process');
      for (;;) spawnSync(process.execPath, ['-e', ${JSON.stringify(spin)}]);`;
    const { error } = await watch(process.execPath, ['-e', again], { memoryBytes: 2 ** 30, cpuMs: 2_000 });
    const found = await eventually(error, { what: 'the limit is exceeded' });
    expect(found).toMatchObject({ message: 'The tool server used 2 s of CPU time.' });
  });

  it('grows by what runs, and by what is waited for, and never falls', () => {
    const count = new CpuCount();
    const times = (pid: number, ownMs: number, waitedMs = 0) => ({
      ...{ pid, parent: 1, session: 1, ownMs },
      totalMs: ownMs + waitedMs,
    });
    expect(count.add([times(1, 10), times(2, 100)])).toBe(110);
    // The second ended with 150 and was waited for.
    expect(count.add([times(1, 20, 150)])).toBe(170);
    expect(count.add([times(1, 20, 150), times(3, 40)])).toBe(210);
    // The third was not waited for, and another took 30 since then.
    expect(count.add([times(1, 20, 150), times(4, 30)])).toBe(240);
  });
});

it('ends a server beyond its limits, and tells the call, which is not repeated', async () => {
  const { input, entries, processes } = oddServer();
  const { servers, log } = openServers({ sandbox: testSandbox({ memoryBytes: 500 * MEBIBYTE }) });
  const tools = await servers.tools(contextOf([input]));
  const result = await callTool(tools, 'odd__grow', { megabytes: 300 });
  expect(result).toEqual(
    failedCall(
      'over_limit',
      /^The tool server used too much memory or CPU time and was ended\. The call may have taken effect\.$/,
    ),
  );
  expect(entries('call')).toHaveLength(1);
  await eventually(() => processes().length === 0, { what: 'all of it has ended' });
  expect(log()).toContain('tool server killed');
  expect((await callTool(tools, 'odd__meta')).isError).toBe(false);
});
