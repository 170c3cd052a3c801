import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

it('limits memory by the soft limit, so that children may have more, and says once what it counts', async () => {
  const told = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const show = `console.log(/Max data size.*/.exec(require('node:fs').readFileSync('/proc/self/limits', 'utf8'))[0]);`;
    const script = join(directory, 'limited.cjs');
    await writeFile(script, show);
    const options = { memoryLimit: 512 * 1024 ** 2 };
    for (let i = 0; i < 2; i++) {
      child = spawnNode(script, [], {}, options);
      await child.waitForLine(/^Max data size +536870912 +unlimited/);
    }
    expect(told.mock.calls).toEqual([[expect.stringMatching(/^memory limits: prlimit --data \(no cgroup\); .*\n$/)]]);
  } finally {
    told.mockRestore();
  }
});

it('names the remedy when the script has not been built', () => {
  expect(() => spawnNode('dist/apps/none/main.js')).toThrow('npm run build');
});
