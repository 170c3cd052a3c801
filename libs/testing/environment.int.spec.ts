import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Real: Jest itself, on planted spec files.

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-leaks-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const HELPERS = JSON.stringify(join(import.meta.dirname, 'fault-proxy.ts'));
/** Runs spec files by their names. */
const SEQUENCER = `module.exports = class {
  sort(tests) { return [...tests].sort((a, b) => (a.path < b.path ? -1 : 1)); }
  cacheResults() {}
};`;

/** Runs these spec files one after the other in one process. */
async function runJest(...specs: string[]): Promise<{ status: number | null; output: string }> {
  for (const [i, spec] of specs.entries())
    await writeFile(join(directory, `${i}.spec.js`), `const { faultProxy } = require(${HELPERS});\n${spec}`);
  await writeFile(join(directory, 'sequencer.cjs'), SEQUENCER);
  const { resolve } = createRequire(join(import.meta.dirname, 'x.js'));
  const config = {
    rootDir: directory,
    testEnvironment: join(import.meta.dirname, 'environment.ts'),
    testSequencer: join(directory, 'sequencer.cjs'),
    runtime: join(import.meta.dirname, 'test-runtime.mjs'),
    transform: { '\\.ts$': [resolve('@swc/jest'), { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' } }] },
  };
  const args = [resolve('jest/bin/jest'), '--runInBand', '--config', JSON.stringify(config)];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' });
  return { status, output: stderr };
}

it('fails a file that leaves something running, by name, and ends it', async () => {
  const { status, output } = await runJest(`test('planted', async () => { await faultProxy(1); });`);
  expect(output).toContain('Left running by this file, stop it in afterEach or afterAll: fault proxy to port 1');
  expect(status).toBe(1);
});

it('lets a file pass that cleans up at its very end', async () => {
  const { status, output } = await runJest(`
    let proxy;
    beforeAll(async () => { proxy = await faultProxy(1); });
    afterAll(() => proxy.close());
    test('planted', () => undefined);`);
  expect(output).toContain('1 passed');
  expect(status).toBe(0);
});

it('shares modules among spec files, but for those that reset them, and undoes what a spec file changed', async () => {
  const leaves = `
    globalThis.shared = faultProxy;
    globalThis.fetch = null;
    process.env.PLANTED = '1';
    process.exitCode = 0;
    jest.useFakeTimers();
    jest.spyOn(JSON, 'parse').mockReturnValue(1);
    test('planted', () => { throw new Error('planted'); });`;
  const finds = `test('planted', () => {
    expect(faultProxy).toBe(globalThis.shared);
    expect(fetch).toBeInstanceOf(Function);
    expect(process.env.PLANTED).toBeUndefined();
    expect(JSON.parse('2')).toBe(2);
    expect(setTimeout.clock).toBeUndefined();
  });`;
  const resets = `
    jest.resetModules();
    test('planted', () => expect(faultProxy).not.toBe(globalThis.shared));`;
  const { output } = await runJest(leaves, finds, resets);
  expect(output).toContain('1 failed, 2 passed');
});
