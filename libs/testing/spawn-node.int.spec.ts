import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canLimit, LIMIT_KINDS, peakMemory, type MemoryLimit } from './memory-limit.ts';
import { spawnNode, type SpawnedNode } from './spawn-node.ts';

let directory: string;
let child: SpawnedNode | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-spawn-'));
});
afterEach(async () => {
  await child?.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

async function run(source: string, env: Record<string, string> = {}): Promise<SpawnedNode> {
  const script = join(directory, 'script.mjs');
  await writeFile(script, source);
  return (child = spawnNode(script, ['argument'], env));
}

const stayAlive = 'setInterval(() => undefined, 1_000);';

it('finds a line of stdout or stderr, past or to come', async () => {
  const node = await run(`console.log('one 1'); console.error('two 2'); ${stayAlive}`);
  expect((await node.waitForLine(/^two (\d)/))[1]).toBe('2');
  expect((await node.waitForLine(/^one (\d)/))[1]).toBe('1');
});

it('says what was printed when the process ends before the line', async () => {
  const node = await run(`console.log('no configuration'); process.exit(3);`);
  await expect(node.waitForLine(/ready/)).rejects.toThrow(/ended with 3 before \/ready\/.*no configuration/s);
});

it('says what was printed when the line does not come', async () => {
  const node = await run(`console.log('booting'); ${stayAlive}`);
  await node.waitForLine(/booting/);
  await expect(node.waitForLine(/ready/, 10)).rejects.toThrow(/prints \/ready\/.*booting/s);
});

it('passes arguments and the given environment, and none of ours', async () => {
  process.env['SPOOL_TEST_PLANTED'] = 'ours';
  const show = 'console.log(process.argv[2], process.env.GIVEN, process.env.SPOOL_TEST_PLANTED);';
  const node = await run(show, { GIVEN: 'given' });
  await node.waitForLine(/^argument given undefined$/);
  delete process.env['SPOOL_TEST_PLANTED'];
});

it('tells how it ended', async () => {
  const graceful = await run(`process.once('SIGTERM', () => process.exit(0)); console.log('ready'); ${stayAlive}`);
  await graceful.waitForLine(/ready/);
  expect(await graceful.kill()).toEqual({ code: 0, signal: null });
  const killed = await run(stayAlive);
  expect(await killed.kill('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
});

describe.each(LIMIT_KINDS.filter(canLimit))('a memory limit by %s', (kind) => {
  const limit = { bytes: 128 * 1024 ** 2, kind };
  const show = `const read = (name) => require('node:fs').readFileSync('/proc/self/' + name, 'utf8');`;

  /** Runs the source as CommonJS under the limit. Returns the process and the path of its cgroup. */
  async function limited(
    source: string,
    more: Partial<MemoryLimit> = {},
  ): Promise<{ node: SpawnedNode; path: string }> {
    const script = join(directory, 'limited.cjs');
    await writeFile(script, `${show} console.log('in ' + /memory:(.*)|0::(.*)/.exec(read('cgroup'))[0]); ${source}`);
    const node = (child = spawnNode(script, [], {}, { memoryLimit: { ...limit, ...more } }));
    return { node, path: (await node.waitForLine(/^in (?:memory|0:):(.*)/))[1]! };
  }

  const foldersOf = async (path: string): Promise<string[]> => {
    const roots = ['/sys/fs/cgroup', '/sys/fs/cgroup/memory'].map((root) => join(root, path));
    return roots.filter((folder) => existsSync(folder));
  };

  it('ends a process that uses more, and leaves no cgroup behind', async () => {
    const take = `const all = []; for (let i = 0; i < 64; i++) all.push(Buffer.alloc(8 * 1024 ** 2, 1)); console.log('survived');`;
    const { node, path } = await limited(take);
    expect(await node.exited).not.toMatchObject({ code: 0 });
    expect(node.output()).not.toContain('survived');
    if (kind !== 'prlimit --data') expect(await foldersOf(path)).toEqual([]);
  });

  it('leaves no cgroup of a process that is killed with its children', async () => {
    const { node, path } = await limited(
      `require('node:child_process').spawn('setpriv', ['--pdeathsig', 'KILL', 'sleep', '1000'], { stdio: 'ignore' }); console.log('ready'); ${stayAlive}`,
    );
    await node.waitForLine(/^ready/);
    if (kind !== 'prlimit --data') expect((await foldersOf(path)).length).toBe(1);
    await node.kill('SIGKILL');
    if (kind !== 'prlimit --data') expect(await foldersOf(path)).toEqual([]);
  });

  it('gives half of it to V8’s heap, and prints the peak of resident memory', async () => {
    const told = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      const heap = `console.log('heap ' + require('node:v8').getHeapStatistics().heap_size_limit); ${stayAlive}`;
      const { node } = await limited(heap);
      const bytes = Number((await node.waitForLine(/^heap (\d+)/))[1]);
      // The limit of the heap also includes the young generation.
      expect(bytes).toBeGreaterThanOrEqual(64 * 1024 ** 2);
      expect(bytes).toBeLessThan(120 * 1024 ** 2);
      expect(peakMemory(node)).toBeGreaterThan(16 * 1024 ** 2);
      expect(told.mock.calls).toEqual([
        [
          expect.stringMatching(
            new RegExp(`^memory limit of .*limited.cjs \\(pid \\d+\\): ${kind}, 128 MiB; VmHWM \\d+ MiB\n$`),
          ),
        ],
      ]);
    } finally {
      told.mockRestore();
    }
  });
});

it('limits memory by the soft limit, so that children may have more', async () => {
  const script = join(directory, 'limited.cjs');
  await writeFile(
    script,
    `console.log(/Max data size.*/.exec(require('node:fs').readFileSync('/proc/self/limits', 'utf8'))[0]);`,
  );
  const memoryLimit: MemoryLimit = { bytes: 448 * 1024 ** 2, untouched: 64 * 1024 ** 2, kind: 'prlimit --data' };
  child = spawnNode(script, [], {}, { memoryLimit });
  await child.waitForLine(/^Max data size +536870912 +unlimited/);
});

it('names the remedy when the script has not been built', () => {
  expect(() => spawnNode('dist/apps/none/main.js')).toThrow('npm run build');
});
