import { execFile } from 'node:child_process';
import { access, chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Spool } from '#client';
import { findFreePort, openDatabase, type Database } from '#platform';
import { eventually, isNight, reportLatency, type SpawnedNode, spawnNode } from '#testing';
import { allRunsCompleted, expectHealthy, expectWholeLog } from './support/checks.ts';
import {
  createAcknowledged,
  createThread,
  getThread,
  inParallel,
  readLog,
  waitForEntry,
  type Caller,
} from './support/client.ts';
import { embeddedDataDir, expectFirstRun } from './support/newcomer.ts';
import { ScriptedProvider } from './support/provider/scripted-provider.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');
/** Under way when it is killed. */
const RUNS = isNight ? 20 : 6;

/** What `npm start` runs, on an embedded PostgreSQL below a directory that only its owner can enter. */
describe('standalone', () => {
  let home: string;
  let port: number;
  let running: SpawnedNode | null = null;
  let dataDir: string | null = null;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'spool-standalone-'));
    await chmod(home, 0o700);
    port = await findFreePort();
  });

  afterAll(async () => {
    await running?.kill('SIGTERM');
    await rm(home, { recursive: true, force: true });
    if (dataDir) await rm(dataDir, { recursive: true, force: true });
  });

  const env = (): Record<string, string> => ({
    DATA_DIR: join(home, '.data'),
    PORT: String(port),
    LEASE_MS: '2000',
    RATE_LIMIT_PER_MINUTE: '1000000000',
  });

  const start = async (more: Record<string, string> = {}): Promise<SpawnedNode> => {
    const process = spawnNode('dist/apps/standalone/main.js', [], { ...env(), ...more });
    running = process;
    await process.waitForLine(/Spool is ready/, 60_000);
    dataDir = embeddedDataDir(process.output());
    return process;
  };

  const openOwnDatabase = async (): Promise<Database> => {
    const url = await readFile(join(home, '.data', 'database.url'), 'utf8');
    return openDatabase({ url, applicationName: 'e2e', maxConnections: 2 });
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

  test('the README’s commands create a Thread, stream its Run, read finalOutput and answer a confirmation', async () => {
    await start();
    await expectFirstRun(home);
    expect((await stat(join(home, '.data', 'quickstart.env'))).mode & 0o777).toBe(0o600);
  }, 90_000);

  test('kill -9 in the middle of Runs, then a start: all go on and complete', async () => {
    const before = await caller();
    // The first Run lasts until the kill, however long the other requests take.
    const first = await createThread(before, '/think 3s /pause 100 one two three four five');
    const firstIsRunning = eventually(
      async () => {
        const status = (await getThread(before, first.body.thread.id)).body.run?.status;
        if (status !== 'running') throw new Error(`it is ${status}`);
        return true;
      },
      { what: 'the first Run is running' },
    );
    const others = inParallel(RUNS - 1, RUNS - 1, (i) =>
      createThread(before, `/pause 100 one two three four five ${i}`),
    );
    const created = [first, ...(await others)];
    await firstIsRunning;
    await running!.kill('SIGKILL');
    await start();
    const after = await caller();
    expect(after).toEqual(before);
    const database = await openOwnDatabase();
    try {
      await allRunsCompleted(database, RUNS + 2, 60_000); // two are the README's
      await expectHealthy(database);
    } finally {
      await database.close();
    }
    for (const { body } of created) {
      const { run: ended } = (await getThread(after, body.thread.id)).body;
      expectWholeLog(await readLog(after, body.thread.id), body.run!.id, ended?.finalOutput?.text ?? '');
    }
    const healthy = new RegExp(`^${RUNS + 1} streams, \\d+ events: 0 findings$`, 'm');
    expect((await spool('verify')).stdout).toMatch(healthy);
    await spool('projections', 'rebuild');
    // And beside it, on its database.
    expect((await spool('verify', '--local')).stdout).toMatch(healthy);
  }, 120_000);

  test('holds at most 22 connections with the default pool while every connection is in use', async () => {
    const me = await caller();
    const database = await openOwnDatabase();
    // Counts all connections of the server, which is its own. One of them is the owner's, and its name is hidden.
    const count = async () => {
      const { rows } = await database.pool.query<{ name: string; held: number }>(
        `select application_name as name, count(*)::integer as held from pg_stat_activity
         where datid is not null and application_name is distinct from 'e2e' group by 1`,
      );
      return new Map(rows.map(({ name, held }) => [name, held]));
    };
    try {
      // Unused connections are closed after a while, so it is pressed until all are open at once.
      const held = await eventually(
        async () => {
          const { body } = await createThread(me, '/think 3s'); // long enough that its lease is renewed
          const creating = inParallel(60, 30, (i) => createThread(me, `/pieces 3 ${i}`));
          // `GET …/events` is never sent in a group, so each request needs a connection.
          await inParallel(300, 60, () => readLog(me, body.thread.id));
          await creating;
          const now = await count();
          // The one of BullMQ's four that listens takes the name of the queue.
          const queue = (now.get('spool queue') ?? 0) + (now.get('spool-runs') ?? 0);
          if (now.get('spool') === 10 && queue === 4 && now.has('spool leases')) return now;
          throw new Error(`held: ${JSON.stringify([...now])}`);
        },
        { what: 'both pools are full and a lease was renewed', timeoutMs: 30_000 },
      );
      expect(Object.fromEntries(held)).toMatchObject({
        'spool dispatcher': 1,
        'spool reaper': 1,
        'spool housekeeping': 1,
        'spool live': 1,
        'spool policy': 1,
      });
      // There is a second connection only while the first one hangs, as on a busy machine (docs/operations/postgresql.md).
      expect([1, 2]).toContain(held.get('spool leases'));
      expect([...held.values()].reduce((sum, part) => sum + part)).toBeLessThanOrEqual(22);
    } finally {
      await database.close();
    }
  }, 60_000);

  test('after stop and start the Thread is still there, and a revoked or rotated token has a successor', async () => {
    const before = await caller();
    const { body } = await createThread(before, 'stay');
    const database = await openOwnDatabase();
    await database.pool.query(`update tokens set revoked_at = now() where kind = 'person'`);
    await database.pool.query(`update tokens set old_hash = hash, hash = '\\x01' where kind = 'operator'`);
    await database.close();
    await running!.kill('SIGTERM');
    const begun = Date.now();
    await start();
    const tookMs = Date.now() - begun;
    const after = await caller();
    expect((await getThread(after, body.thread.id)).body.thread.id).toBe(body.thread.id);
    expect(after.agentId).toBe(before.agentId);
    expect(after.token).not.toBe(before.token);
    await spool('overview');
    reportLatency(5_000, tookMs, 'until it is ready');
  }, 60_000);

  test('the start page names the guide, which asks before it writes a file, fails, is retried and can be stopped', async () => {
    const quickstart = await readFile(join(home, '.data', 'quickstart.env'), 'utf8');
    const agentId = /^GUIDE_AGENT_ID=(.+)$/m.exec(quickstart)?.[1] ?? '';
    const { baseUrl, token } = await caller();
    const start = await fetch(new URL('/', baseUrl), { headers: { accept: 'text/html' } });
    const page = await start.text();
    const link = `<a href="chat/${agentId}">guide</a>`;
    expect(page).toContain(`${link}: A scripted guide to Spool, without a model<br><code>${agentId}</code>`);
    expect((await fetch(new URL(`/chat/${agentId}`, baseUrl))).status).toBe(200);
    expect(page).not.toMatch(/spool_(pat|svc|op|bt)_/);
    const client = new Spool({ baseUrl, token });
    const tour = await client.agent(agentId).send('Show me what you can do', { userId: 'me' });
    const thread = client.thread(tour.threadId);
    const { questions } = await tour.answer();
    await thread.decide(questions[0]!.requestId, 'allow_once');
    expect((await tour.answer()).text).toMatch(/^Done: the file/);
    const failing = await thread.send('Show an error');
    await expect(failing.answer()).rejects.toMatchObject({ reason: 'provider_unavailable' });
    const retried = await thread.retry(failing.id);
    expect((await retried.answer()).text).toMatch(/^The retry worked/);
    const long = await thread.send('Tell me everything');
    for await (const { type, runId } of thread.stream({ after: long.id })) {
      if (type === 'agent.message.delta' && runId === long.id) break;
    }
    await thread.interrupt(long.id);
    await expect(long.answer()).rejects.toMatchObject({ reason: 'cancelled' });
    const { messages } = await thread.messages();
    const kinds = messages.map(({ role, parts }) => [role, parts.map(({ type }) => type).join(' ')]);
    expect(kinds).toEqual([
      ['user', 'text'],
      ['agent', 'thinking text tool_call tool_call text tool_call file text'],
      ['user', 'text'],
      ['agent', 'thinking text tool_call'],
      ['agent', 'text'],
      ['user', 'text'],
      ['agent', 'text'],
    ]);
  }, 60_000);

  test('where the environment names a provider, an assistant is published too and answers by it', async () => {
    await running!.kill('SIGTERM');
    // A newcomer begins anew, and the embedded PostgreSQL of root is elsewhere: the names below stay unambiguous.
    await rm(join(home, '.data', 'quickstart.env'));
    const provider = await ScriptedProvider.start();
    try {
      const OPENAI_MODEL = 'any';
      const model = { OPENAI_BASE_URL: provider.openaiUrl, OPENAI_API_KEY: provider.apiKey, OPENAI_MODEL };
      await start(model);
      const quickstart = await readFile(join(home, '.data', 'quickstart.env'), 'utf8');
      const agentId = /^ASSISTANT_ID=(.+)$/m.exec(quickstart)?.[1] ?? '';
      expect(running!.output()).toContain(`Assistant (any): agent ${agentId}`);
      const me = { ...(await caller()), agentId };
      const { threadId } = await createAcknowledged(me, 'script: hello');
      await waitForEntry(me, threadId, 'run.completed');
      expect((await getThread(me, threadId)).body.run?.finalOutput?.text).toBe('Hello, I am here.');
      // The README's command, with the key in place.
      const apply = 'agent apply -f examples/agents/analyst.yaml --org Quickstart --owner You --publish --yes';
      expect(await readFile(join(ROOT, 'README.md'), 'utf8')).toContain(`npx spool ${apply}\n`);
      await spool(...apply.split(' '));
      const shown = await spool('agent', 'show', 'analyst', '--org', 'Quickstart', '--json');
      const { agent, readiness } = JSON.parse(shown.stdout) as { agent: { id: string }; readiness: unknown[] };
      expect({ agent, readiness }).toMatchObject({ agent: { published: true }, readiness: [] });
      // A step begins once the tools of its servers are listed. This copy has the address of the scripted provider.
      const manifest = join(home, 'analyst.yaml');
      const text = await readFile(join(ROOT, 'examples/agents/analyst.yaml'), 'utf8');
      await writeFile(manifest, withProvider(text, provider.openaiUrl));
      await spool('agent', 'apply', '-f', manifest, '--org', 'Quickstart', '--owner', 'You', '--publish', '--yes');
      const analyst = { ...me, agentId: agent.id };
      const asked = await createAcknowledged(analyst, 'script: hello');
      await waitForEntry(analyst, asked.threadId, 'run.completed');
      const tools = JSON.stringify(provider.requests.at(-1)?.body);
      expect(tools).toContain('handbook__read_text_file');
      expect(tools).toContain('everything__get-sum');
    } finally {
      await provider.close();
    }
  }, 60_000);

  test('`npx spool` says in one line that there is no service and no database when it is stopped', async () => {
    await running!.kill('SIGTERM');
    running = null;
    const stderr = expect.stringMatching(/^[^\n]+\n$/) as string;
    await expect(spool('verify')).rejects.toMatchObject({ code: 5, stderr });
    await expect(spool('verify', '--local')).rejects.toMatchObject({ code: 5, stderr });
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
    'a database that does not answer stops the start of %s with one readable line',
    async (app) => {
      const url = 'postgres://me:secret@127.0.0.1:1/spool';
      const process = spawnNode(`dist/apps/${app}/main.js`, [], { ...env(), DATABASE_URL: url });
      expect(await process.exited).toMatchObject({ code: 1 });
      expect(process.output()).toBe('The database spool at 127.0.0.1:1 does not answer.\n');
    },
  );

  test.each(['standalone', 'api', 'worker'])(
    'a wrong setting stops the start of %s with one readable line',
    async (app) => {
      const process = spawnNode(`dist/apps/${app}/main.js`, [], { ...env(), LEASE_MS: 'long' });
      expect(await process.exited).toMatchObject({ code: 1 });
      expect(process.output()).toMatch(/^Wrong configuration: LEASE_MS: [^\n]*\n$/);
    },
  );
});

/** What a signal amid the start leaves behind: nothing, neither a server that goes on nor one that was cut off. */
describe('standalone, told to stop while it starts', () => {
  let home: string;
  let starting: SpawnedNode;

  const begin = async (): Promise<void> => {
    home = await mkdtemp(join(tmpdir(), 'spool-standalone-'));
    starting = spawnNode('dist/apps/standalone/main.js', [], { DATA_DIR: home, PORT: String(await findFreePort()) });
  };
  const cleanUp = async (): Promise<void> => {
    await starting.kill('SIGKILL');
    const dataDir = embeddedDataDir(starting.output());
    if (dataDir) await rm(dataDir, { recursive: true, force: true });
    await rm(home, { recursive: true, force: true });
  };
  beforeEach(begin);
  afterEach(cleanUp);

  const exists = (path: string): Promise<boolean> =>
    access(path).then(
      () => true,
      () => false,
    );

  test.each([
    ['begins', () => eventually(() => exists(join(home, 'postgres')), { what: 'it prepares the database' })],
    ['has just started', () => starting.waitForLine(/embedded PostgreSQL ready/, 30_000)],
  ])('when PostgreSQL %s', async (_, moment) => {
    const stop = async (): Promise<void> => {
      await moment();
      expect(await starting.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    };
    await stop();
    // The signal may have come too late once or twice.
    for (let more = 2; more > 0 && starting.output().includes('Spool is ready'); more--) {
      await cleanUp();
      await begin();
      await stop();
    }
    const output = starting.output();
    expect(output).toMatch(/"msg":"stopping"[^]*"msg":"stopped"}\n$/);
    expect(output).not.toMatch(/Spool is ready|"level":"(error|fatal)"|^ +at /m);
    const pgdata = join(embeddedDataDir(output) ?? join(home, 'postgres'), 'pgdata');
    expect(await exists(join(pgdata, 'PG_VERSION'))).toBe(true);
    expect(await exists(join(pgdata, 'postmaster.pid'))).toBe(false);
    expect(await exists(join(home, 'database.url'))).toBe(false);
  });
});

/** Returns the manifest with this provider, and with time for the tool server that is optional, which may start slowly. */
function withProvider(manifest: string, baseUrl: string): string {
  return manifest
    .replace(/^( +)name: gpt-.*$/m, `$&\n$1baseUrl: ${baseUrl}`)
    .replace(/^( +)required: false$/m, '$&\n$1startMs: 2m');
}
