import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort, openDatabase } from '#platform';
import { eventually, spawnNode, type SpawnedNode } from '#testing';
import { allRunsCompleted, expectHealthy, expectWholeLog } from './support/checks.ts';
import { createThread, getThread, inParallel, readLog, type Caller } from './support/client.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');

/** What `npm start` runs, on an embedded PostgreSQL below a directory that only its owner can enter. */
describe('standalone', () => {
  let home: string;
  let port: number;
  let running: SpawnedNode | null = null;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'spool-standalone-'));
    await chmod(home, 0o700);
    port = await findFreePort();
  });

  afterAll(async () => {
    await running?.kill('SIGTERM');
    await rm(home, { recursive: true, force: true });
  });

  const env = (): Record<string, string> => ({ DATA_DIR: join(home, '.data'), PORT: String(port), LEASE_MS: '2000' });

  const start = async (): Promise<SpawnedNode> => {
    const process = spawnNode('dist/apps/standalone/main.js', [], env());
    running = process;
    await process.waitForLine(/Spool is ready/, 60_000);
    return process;
  };

  const caller = async (): Promise<Caller> => {
    const text = await readFile(join(home, '.data', 'quickstart.env'), 'utf8');
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
    return { baseUrl: value('BASE_URL'), token: value('ACCESS_TOKEN'), agentId: value('AGENT_ID') };
  };

  const spool = async (...args: string[]) =>
    run(process.execPath, [join(ROOT, 'dist/apps/cli/main.js'), ...args], {
      env: { ...process.env, ...env(), DATABASE_URL: '' },
    });

  test('the README’s three lines create a Thread, stream its Run to run.completed and read finalOutput', async () => {
    await start();
    const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
    const script = /^\. \.data\/quickstart\.env\n[^`]+/m.exec(readme)?.[0] ?? '';
    const { stdout } = await run('/bin/sh', ['-ec', script], { cwd: home });
    expect(stdout).toContain('event: thread.event');
    expect(stdout).toContain('"type":"run.completed"');
    expect(stdout).toMatch(/"finalOutput":\{"text":"You said: Hello, Spool"/);
    expect((await stat(join(home, '.data', 'quickstart.env'))).mode & 0o777).toBe(0o600);
  }, 90_000);

  test('kill -9 in the middle of 20 Runs, then a start: all go on and complete', async () => {
    const before = await caller();
    const created = await inParallel(20, 20, (i) => createThread(before, `/pause 100 one two three four five ${i}`));
    await eventually(
      async () => {
        const { body } = await getThread(before, created[0]!.body.thread.id);
        return body.run?.status === 'running';
      },
      { what: 'the first Run is running' },
    );
    await running!.kill('SIGKILL');
    await start();
    const after = await caller();
    expect(after).toEqual(before);
    const url = await readFile(join(home, '.data', 'database.url'), 'utf8');
    const database = await openDatabase({ url, applicationName: 'e2e', maxConnections: 2 });
    try {
      await allRunsCompleted(database, 21, 60_000);
      await expectHealthy(database);
    } finally {
      await database.close();
    }
    for (const { body } of created) {
      const { run: ended } = (await getThread(after, body.thread.id)).body;
      expectWholeLog(await readLog(after, body.thread.id), body.run!.id, ended?.finalOutput?.text ?? '');
    }
    expect((await spool('verify')).stdout).toMatch(/20|21/);
    await spool('projections', 'rebuild');
  }, 120_000);

  test('after stop and start the Thread is still there, within 5 s', async () => {
    const { body } = await createThread(await caller(), 'stay');
    await running!.kill('SIGTERM');
    const begun = Date.now();
    await start();
    expect(Date.now() - begun).toBeLessThan(5_000);
    expect((await getThread(await caller(), body.thread.id)).body.thread.id).toBe(body.thread.id);
  }, 60_000);

  test('`npx spool` says in one line that there is no database when it is stopped', async () => {
    await running!.kill('SIGTERM');
    running = null;
    await expect(spool('verify')).rejects.toMatchObject({ stderr: expect.stringMatching(/^[^\n]+\n$/) as string });
  });

  test('a taken port stops the start with one clear line', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const taken = (other.address() as AddressInfo).port;
    const process = spawnNode('dist/apps/standalone/main.js', [], { ...env(), PORT: String(taken) });
    expect(await process.exited).toMatchObject({ code: 1 });
    expect(process.output()).toMatch(new RegExp(`^Port ${taken} of 127.0.0.1 is taken[^\\n]*\\n$`));
    other.close();
  });

  test.each(['standalone', 'api', 'worker'])(
    'a wrong setting stops the start of %s with one readable line',
    async (app) => {
      const process = spawnNode(`dist/apps/${app}/main.js`, [], { ...env(), LEASE_MS: 'long' });
      expect(await process.exited).toMatchObject({ code: 1 });
      expect(process.output()).toMatch(/^Wrong configuration: LEASE_MS: [^\n]*\n$/);
    },
  );
});
