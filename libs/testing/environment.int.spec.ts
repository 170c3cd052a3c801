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

async function runJest(spec: string): Promise<{ status: number | null; output: string }> {
  const helpers = JSON.stringify(join(import.meta.dirname, 'fault-proxy.ts'));
  await writeFile(join(directory, 'planted.spec.js'), `const { faultProxy } = require(${helpers});\n${spec}`);
  const { resolve } = createRequire(join(import.meta.dirname, 'x.js'));
  const config = {
    rootDir: directory,
    testEnvironment: join(import.meta.dirname, 'environment.ts'),
    runtime: join(import.meta.dirname, 'test-runtime.mjs'),
    transform: { '\\.ts$': [resolve('@swc/jest'), { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' } }] },
  };
  const args = [resolve('jest/bin/jest'), '--config', JSON.stringify(config)];
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
