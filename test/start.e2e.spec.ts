import { cpSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createTestDatabase,
  reportLatency,
  type SpawnedNode,
  spawnNode,
  type TestDatabase,
  usualCpuOf,
} from '#testing';

const ROOT = join(import.meta.dirname, '..');

/** The most CPU time of a start: user and system time of all threads, with page faults that cost as usual. */
const MAX_CPU_MS = 1_200;

const READY = { api: /"msg":"api ready"/, worker: /"msg":"worker ready"/, standalone: /^Spool is ready/ };

/** Runs the bundles from a separate folder, without the compiled libs and their SQL files. The lease thread is a bundle too. */
describe('a bundled process', () => {
  let folder: string;
  let database: TestDatabase;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-bundles-'));
    for (const name of ['api', 'worker', 'standalone', 'chunks']) {
      cpSync(join(ROOT, 'dist/apps', name), join(folder, 'dist/apps', name), { recursive: true });
    }
    const leaseThread = 'dist/libs/run-engine/lease-thread-worker.mjs';
    cpSync(join(ROOT, leaseThread), join(folder, leaseThread));
    for (const name of ['package.json', 'node_modules']) symlinkSync(join(ROOT, name), join(folder, name));
    database = await createTestDatabase();
  });

  afterAll(async () => {
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Starts Node as in production, with source maps and no other flag. */
  async function start(app: keyof typeof READY, more: Record<string, string> = {}): Promise<SpawnedNode> {
    const env = { DATABASE_URL: database.url, PORT: '0', DATA_DIR: join(folder, 'data'), ...more };
    const flags = ['--enable-source-maps'];
    const process = spawnNode(join(folder, 'dist/apps', app, 'main.js'), [], env, { flags });
    await process.waitForLine(READY[app], 45_000);
    return process;
  }

  const isLinux = process.platform === 'linux';
  if (!isLinux) process.stderr.write('SKIPPED: the CPU time of a start needs /proc.\n');

  for (const app of ['api', 'worker', 'standalone'] as const) {
    const name = `starts the ${app}`;
    const measure = async (): Promise<void> => {
      const process = await start(app);
      const tookMs = usualCpuOf(process.pid);
      expect(await process.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      reportLatency(MAX_CPU_MS, tookMs, `the ${app} took`);
    };
    if (isLinux) test(name, measure, 60_000);
    else test.skip(name, measure);
  }

  it('names sources in stack traces: ours for our frames, the bundle for those of packages', async () => {
    const printStack = `import { Server } from 'node:net';
      const { listen } = Server.prototype;
      Server.prototype.listen = function (...args) {
        console.log(new Error('listens').stack);
        return listen.apply(this, args);
      };`;
    const preload = `--import data:text/javascript,${encodeURIComponent(printStack)}`;
    const api = await start('api', { NODE_OPTIONS: preload });
    expect(await api.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    const source = readFileSync(join(ROOT, 'apps/api/start-api.ts'), 'utf8').split('\n');
    const [, path, line] = /at async listen \((.*):(\d+):\d+\)/.exec(api.output()) ?? [];
    expect(path).toBe(join(realpathSync(folder), 'apps/api/start-api.ts'));
    expect(source[Number(line) - 1]).toContain('.listen(');
    // Fastify calls the server's `listen`.
    const fastifys = /^ +at Server\.listen .*\n +at (.*)$/m.exec(api.output())?.[1];
    expect(fastifys).toMatch(/\/dist\/apps\/chunks\/[^/]+\.js:\d+:\d+\)?$/);
  });
});
