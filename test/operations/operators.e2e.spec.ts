import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { asOwner, createTestDatabase, eventually, spawnNode, type SpawnedNode, type TestDatabase } from '#testing';
import { createThread, getThread, send, waitForEntry, type Caller } from '../support/client.ts';
import { SpoolCommand } from '../support/spool-command.ts';

interface Named {
  id: string;
  name: string;
}
interface Minted {
  token: Named;
  secret: string;
}

const ECHO = `# What the tests talk to.
name: echo
harness:
  name: echo
  pauseMs: 0
`;
const PRIVATE = ECHO.replace('name: echo', 'name: private');

/** What operators do, by commands alone, beginning with a database that has nothing in it. */
describe('operators', () => {
  let neighbour: TestDatabase;
  let admin: Client;
  let databaseUrl: string;
  let folder: string;
  let tokenFile: string;
  let spool: SpoolCommand;
  let api: SpawnedNode;
  let worker: SpawnedNode;
  let baseUrl: string;
  /** Every secret that was printed, on purpose. */
  const secrets: string[] = [];
  let pool: Client;

  beforeAll(async () => {
    neighbour = await createTestDatabase();
    const url = new URL(neighbour.url);
    admin = new Client({ connectionString: neighbour.ownerUrl });
    await admin.connect();
    await admin.query(`create database ${url.pathname.slice(1)}_empty`);
    url.pathname += '_empty';
    databaseUrl = url.href;
    folder = await mkdtemp(join(tmpdir(), 'spool-operators-'));
    tokenFile = join(folder, 'token');
    pool = new Client({ connectionString: asOwner(databaseUrl) });
    await pool.connect();
  });

  afterAll(async () => {
    await Promise.all([api?.kill('SIGKILL'), worker?.kill('SIGKILL')]);
    await pool.end();
    await admin.query(`drop database if exists ${new URL(databaseUrl).pathname.slice(1)} with (force)`);
    await admin.end();
    await neighbour.drop();
    await rm(folder, { recursive: true });
  });

  const local = { DATABASE_URL: '', DATA_DIR: '/nonexistent' };
  const mint = async (...args: string[]): Promise<Minted> => {
    const minted = await spool.json<Minted>('token', 'create', ...args);
    secrets.push(minted.secret);
    return minted;
  };
  const caller = ({ secret }: Minted, agent: Named): Caller => ({ baseUrl, token: secret, agentId: agent.id });
  const statusOf = async (who: Caller): Promise<number> => (await createThread(who, 'hi')).status;
  const becomes = (who: Caller, status: number) =>
    eventually(async () => (await statusOf(who)) === status, { what: `it is answered ${status}`, timeoutMs: 10_000 });

  const tables = async (): Promise<string[]> => {
    const { rows } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    );
    return rows.map(({ name }) => name);
  };
  /** Of what operators change. */
  const rowCounts = async (): Promise<Record<string, string>> => {
    const counts: Record<string, string> = {};
    for (const table of await tables()) {
      if (/rate_limit|worker|bullmq|queue/i.test(table)) continue;
      const { rows } = await pool.query<{ sum: string }>(
        `select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) || count(*) as sum from ${table} t`,
      );
      counts[table] = rows[0]!.sum;
    }
    // A use of a token is noted in it, once a minute.
    delete counts['public.tokens'];
    const { rows } = await pool.query<{ sum: string }>(
      `select string_agg(concat_ws(' ', id, name, revoked_at, expires_at, encode(hash, 'hex')), ',' order by id) as sum from tokens`,
    );
    return { ...counts, tokens: rows[0]!.sum };
  };

  let ann: Minted;
  let echo: Named;

  test('make everything from an empty database, and callers are answered as they must be', async () => {
    const onDatabase = { ...local, DATABASE_URL: databaseUrl };
    spool = new SpoolCommand({ SPOOL_TOKEN_FILE: tokenFile });
    expect(await spool.run(['migrate'], { env: onDatabase })).toMatchObject({
      code: 5,
      err: expect.stringContaining(': run spool migrate --owner-url with the URL of its owner.') as string,
    });
    const asTheOwner = ['migrate', '--owner-url', asOwner(databaseUrl)];
    expect(await spool.run(asTheOwner, { env: onDatabase })).toMatchObject({ code: 0 });
    expect(await spool.run(['migrate'], { env: onDatabase })).toMatchObject({ code: 0 });
    const first = await spool.run(['token', 'create', '--operator', '--name', 'first', '--local'], { env: onDatabase });
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^spool_op_[\w-]{48}\n$/) as string });
    secrets.push(first.out.trim());
    await writeFile(tokenFile, first.out, { mode: 0o600 });

    const env = { DATABASE_URL: databaseUrl, PORT: '0', LOG_LEVEL: 'trace', DATA_DIR: folder };
    api = spawnNode('dist/apps/api/main.js', [], { ...env, RATE_LIMIT_PER_MINUTE: '1000000' });
    worker = spawnNode('dist/apps/worker/main.js', [], env);
    baseUrl = (await api.waitForLine(/"url":"([^"]+)".*"api ready"/, 45_000))[1]!;
    await worker.waitForLine(/worker ready/, 45_000);
    spool = new SpoolCommand({ SPOOL_TOKEN_FILE: tokenFile, SPOOL_URL: baseUrl });

    const manifests = join(folder, 'agents');
    await mkdir(join(manifests, 'more'), { recursive: true });
    await writeFile(join(manifests, 'echo.yaml'), ECHO);
    await writeFile(join(manifests, 'more', 'private.yml'), PRIVATE);
    await Promise.all(['Acme', 'Umbrella'].map((org) => spool.json('org', 'create', org)));
    const people = Object.entries({ Ann: 'Acme', Cid: 'Acme', Ben: 'Umbrella' });
    await Promise.all(people.map(([name, org]) => spool.json('user', 'create', name, '--org', org)));
    const apply = ['agent', 'apply', '--org', 'Acme', '--owner', 'Ann', '--publish', '--yes'];
    await spool.json(...apply, '-f', manifests);
    const theirs = ['agent', 'apply', '--org', 'Umbrella', '--publish', '--yes', '-f', '-', '--json'];
    expect(
      await spool.run(theirs, { input: JSON.stringify({ name: 'echo', harness: { name: 'echo' } }) }),
    ).toMatchObject({
      code: 0,
    });
    const agents = await spool.json<Named[]>('agent', 'list', '--org', 'Acme');
    echo = agents.find(({ name }) => name === 'echo')!;
    const secluded = agents.find(({ name }) => name === 'private')!;
    await spool.json('agent', 'access', 'private', 'invited');
    ann = await mint('--user', 'Ann', '--name', 'ann', '--expires', '30d');
    const [cid, ben, service] = await Promise.all([
      mint('--user', 'Cid', '--name', 'cid'),
      mint('--user', 'Ben', '--name', 'ben'),
      mint('--service', 'Acme', '--agent', 'echo', '--name', 'ci'),
    ]);

    // Two Agents are called echo: who means one says whose.
    const ambiguous = await spool.run(['agent', 'show', 'echo']);
    expect(ambiguous).toMatchObject({ code: 2, out: '' });
    expect(ambiguous.err).toContain(echo.id);

    await becomes(caller(cid, secluded), 403);
    const statuses = [];
    for (const agent of [echo, secluded]) {
      for (const minted of [ann, cid, ben, service]) statuses.push(await statusOf(caller(minted, agent)));
    }
    expect(statuses).toEqual([201, 201, 403, 201, 201, 403, 403, 403]);
    // The service sees a change a second later, so all of a kind are made first.
    await Promise.all([spool.json('agent', 'invite', 'private', 'Cid'), spool.json('token', 'allow', 'ci', 'private')]);
    await Promise.all([cid, service].map((minted) => becomes(caller(minted, secluded), 201)));
    await Promise.all([
      spool.json('token', 'revoke', 'ci', '--yes'),
      spool.json('org', 'remove-member', 'Acme', 'Cid', '--yes'),
      spool.json('agent', 'api', 'private', 'off', '--yes'),
    ]);
    await Promise.all([
      becomes(caller(service, echo), 401),
      becomes(caller(cid, echo), 403),
      becomes(caller(ann, secluded), 409),
    ]);
    expect((await spool.run(['org', 'list'], { env: { SPOOL_TOKEN_FILE: '', SPOOL_TOKEN: ann.secret } })).code).toBe(4);
    // Every change has an entry, with who has made it.
    const audit = await spool.json<{ action: string; actor: { name: string } }[]>('audit', '--all');
    expect(new Set(audit.map(({ actor }) => actor.name)).has('first')).toBe(true);
    expect(audit.map(({ action }) => action)).toEqual(expect.arrayContaining(['token.revoked', 'agent.created']));
  }, 180_000);

  test('a wrong manifest is refused with its place and changes nothing; the same one twice is unchanged', async () => {
    const isQuiet = async () => (await pool.query('select from run_work')).rowCount === 0;
    await eventually(isQuiet, { what: 'all Runs have ended', timeoutMs: 20_000 });
    const before = await rowCounts();
    const file = join(folder, 'wrong.yaml');
    const apply = ['agent', 'apply', '--org', 'Acme', '--yes', '-f'];
    await writeFile(file, `${ECHO}whenBusy: maybe\n---\nname: other\n`);
    const wrong = await spool.run([...apply, file]);
    expect(wrong).toMatchObject({ code: 2, out: '' });
    expect(wrong.err).toMatch(/wrong\.yaml:6:11 whenBusy: must be/);
    expect(wrong.err).toMatch(/wrong\.yaml:8:1 harness: is missing/);
    // What only the service knows is wrong has a place too.
    await writeFile(file, ECHO.replace('pauseMs: 0', 'pauseMs: soon'));
    const refused = await spool.run([...apply, file]);
    expect(refused).toMatchObject({ code: 2, out: '' });
    expect(refused.err).toMatch(/wrong\.yaml:5:12 harness\.pauseMs: /);
    const again = await spool.run([...apply, join(folder, 'agents')]);
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^echo: unchanged\n\nprivate: unchanged\n$/) as string,
    });
    expect(again.err).toBe('Nothing to change.\n');
    // A dry run shows the change and makes none, and so does one that nobody has agreed to.
    await writeFile(file, `${ECHO}description: New.\n`);
    for (const [args, code] of [
      [['--dry-run'], 0],
      [[], 2],
    ] as const) {
      const shown = await spool.run(['agent', 'apply', '--org', 'Acme', '-f', file, ...args]);
      expect(shown).toMatchObject({ code, out: expect.stringContaining('+description: New.') as string });
    }
    expect(await rowCounts()).toEqual(before);
    expect((await spool.run([...apply, file])).out).toContain('echo: updated, version 2');
    await spool.json('agent', 'rollback', echo.id, '--yes');
    const versions = await spool.json<{ version: number }[]>('agent', 'versions', echo.id);
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
  }, 60_000);

  test('what cannot be undone changes nothing without --yes where nobody can be asked', async () => {
    const { body } = await createThread(caller(ann, echo), '/pause 600000 long');
    const [threadId, runId] = [body.thread.id, body.run!.id];
    // Its first words are the last that the Run writes by itself.
    await waitForEntry(caller(ann, echo), threadId, 'agent.message.delta');
    const before = await rowCounts();
    const commands = [
      ['org', 'remove-member', 'Acme', 'Ann'],
      ['token', 'revoke', 'ann'],
      ['token', 'rotate', 'ann', '--now'],
      ['agent', 'unpublish', echo.id],
      ['agent', 'rollback', echo.id],
      ['agent', 'delete', echo.id],
      ['agent', 'api', echo.id, 'off'],
      ['thread', 'terminate', threadId],
      ['thread', 'delete', threadId],
      ['run', 'cancel', runId],
      ['queue', 'pause'],
    ];
    const refused = await Promise.all(commands.map((args) => spool.run(args, { input: 'y\n' })));
    for (const [i, { code, out, err }] of refused.entries()) {
      expect([commands[i], code, out]).toEqual([commands[i], 2, '']);
      expect(err).toContain('pass --yes');
    }
    // The worker renews its lease meanwhile.
    expect({ ...(await rowCounts()), 'public.run_work': '' }).toEqual({ ...before, 'public.run_work': '' });
    expect((await spool.json<{ status: string }>('run', 'cancel', runId, '--yes')).status).toBe('cancelled');
    expect((await spool.run(['run', 'cancel', runId, '--yes'])).code).toBe(6);
    await spool.json('queue', 'pause', '--yes');
    expect((await spool.json<{ pausedAt: string | null }>('queue', 'status')).pausedAt).not.toBeNull();
    expect((await spool.json<{ pausedAt: string | null }>('queue', 'resume')).pausedAt).toBeNull();
    expect((await spool.json<{ trigger: string }>('run', 'retry', runId)).trigger).toBe('resume');
  }, 120_000);

  test('Threads are followed, exported, ended and deleted', async () => {
    const me = caller(ann, echo);
    const { body } = await createThread(me, 'one two three /artifact');
    const { id } = body.thread;
    const followed = await spool.run(['thread', 'tail', id, '--until-idle', '--json']);
    expect(followed).toMatchObject({ code: 0 });
    const entries = followed.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; type: string });
    expect(entries.at(0)?.type).toBe('user.message');
    expect(entries.map(({ type }) => type)).toContain('run.completed');
    expect(new Set(entries.map((entry) => entry.id)).size).toBe(entries.length);

    const output = join(folder, 'thread.ndjson');
    expect(await spool.run(['thread', 'export', id, '-o', output])).toMatchObject({ code: 0, out: '' });
    const toFile = await readFile(output, 'utf8');
    expect((await spool.run(['thread', 'export', id])).out).toBe(toFile);
    const versions = toFile
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { version: number }).version);
    expect(versions).toEqual(versions.map((_, i) => i + 1));
    expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([]);

    // By the service and without it.
    const [{ id: fileId }] = await spool.json<[Named]>('thread', 'files', id);
    const artifact = join(folder, 'echo.txt');
    expect(await spool.run(['file', 'download', fileId, '-o', artifact])).toMatchObject({ code: 0, out: '' });
    expect(await readFile(artifact, 'utf8')).toContain('one two three');
    expect((await spool.run(['file', 'download', fileId])).out).toBe(await readFile(artifact, 'utf8'));
    const direct = { DATABASE_URL: databaseUrl, DATA_DIR: folder };
    const byHand = await spool.run(['file', 'download', fileId, '--local'], { env: direct });
    expect(byHand).toMatchObject({ code: 0, out: await readFile(artifact, 'utf8') });
    const { runs } = await spool.json<{ runs: Named[] }>('thread', 'show', id);
    expect((await spool.run(['run', 'show', runs[0]!.id])).out).toMatch(/ model +echo +ok /);
    const [newest] = await spool.json<{ type: string }[]>('thread', 'events', id, '--limit', '1');
    expect(newest!.type).toBe('thread.status_entered');
    expect((await spool.json<{ archived: boolean }>('thread', 'archive', id)).archived).toBe(true);
    expect((await spool.json<{ archived: boolean }>('thread', 'unarchive', id)).archived).toBe(false);

    // Ctrl-C ends what would go on.
    const stopped = await spool.run(['thread', 'tail', id], {
      onOutput: (out, interrupt) => {
        if (out.includes('run.completed')) interrupt();
      },
    });
    expect(stopped).toMatchObject({ code: 130, err: '' });

    expect((await spool.json<{ status: string }>('thread', 'terminate', id, '--yes')).status).toBe('TERMINATED');
    expect((await getThread(me, id)).body.thread.status).toBe('TERMINATED');
    await spool.json('thread', 'delete', id, '--yes');
    expect((await getThread(me, id)).status).toBe(404);
    expect((await spool.run(['thread', 'show', id])).code).toBe(3);
    expect((await spool.run(['verify'])).out).toMatch(/^\d+ streams, \d+ events: 0 findings\n$/);
    expect((await spool.run(['projections', 'rebuild'])).code).toBe(0);
    // PostgreSQL of tests may be without fsync, which the doctor does not let pass.
    const doctor = await spool.run(['doctor', '--json']);
    const bad = (JSON.parse(doctor.out) as { name: string; status: string }[]).filter(({ status }) => status !== 'ok');
    expect(bad.filter(({ name }) => name !== 'database')).toEqual([]);
    expect(doctor.code).toBe(bad.some(({ status }) => status === 'failed') ? 1 : 0);
  }, 120_000);

  const holds = (text: string): boolean => secrets.some((secret) => text.includes(secret.slice(-43)));

  /** Where a secret is in the database. */
  const inDatabase = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const table of await tables()) {
      const { rows } = await pool.query<{ text: string }>(`select t::text as text from ${table} t`);
      if (rows.some(({ text }) => holds(text))) found.push(table);
    }
    return found;
  };

  /** Which running processes have a secret in their arguments. */
  const inProcesses = async (): Promise<string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return lines.filter(holds);
  };

  test('no secret is anywhere but where it was printed on purpose', async () => {
    const rotated = await spool.json<Minted>('token', 'rotate', 'ann', '--grace', '1h');
    secrets.push(rotated.secret);
    expect(await statusOf(caller(ann, echo))).toBe(201);
    expect(await statusOf(caller(rotated, echo))).toBe(201);
    const at = (token: string) => ({ baseUrl, token, agentId: echo.id });
    const adminUrl = baseUrl.replace('/api/v1', '/admin/v1');
    const operator = secrets[0]!;
    for (const secret of [rotated.secret, operator]) {
      await send(at(secret), 'POST', `/agents/${echo.id}/threads`, '{"userId": broken');
      await send({ ...at(secret), baseUrl: adminUrl }, 'POST', '/organizations', { name: 7, more: true });
      await send({ ...at(secret), baseUrl: adminUrl }, 'GET', '/nothing');
    }
    const wrongDatabase = {
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      SPOOL_TOKEN_FILE: '',
      SPOOL_TOKEN: operator,
    };
    const misuse = async (...json: string[]): Promise<void> => {
      expect((await spool.run(['org', 'list', '--local', ...json], { env: wrongDatabase })).code).toBe(5);
      expect((await spool.run(['org', 'show', 'nobody', ...json])).code).toBe(3);
      expect((await spool.run(['org', 'show', operator.slice(0, -3), ...json])).code).toBe(2);
      const elsewhere = { SPOOL_URL: 'http://127.0.0.1:1' };
      expect((await spool.run(['org', 'list', ...json], { env: elsewhere })).code).toBe(5);
      const twoLines = { SPOOL_TOKEN_FILE: '', SPOOL_TOKEN: `${operator}\n${operator}` };
      expect((await spool.run(['org', 'list', ...json], { env: twoLines })).code).toBe(2);
      const checked = await spool.run(['token', 'check', ...json], { input: rotated.secret });
      expect(checked).toMatchObject({ code: 0, out: expect.stringContaining(ann.token.id) as string });
      expect(holds(checked.out)).toBe(false);
    };
    await Promise.all([misuse(), misuse('--json')]);
    await spool.json('token', 'revoke', 'ann', '--yes');
    await becomes(caller(rotated, echo), 401);

    // That one is given as an argument is the caller's own doing, which the test has to do to see what becomes of it.
    const saidByCommands = spool.said.filter((text) => !text.includes(`show\0${operator.slice(0, -3)}`));
    expect(saidByCommands.length).toBe(spool.said.length - 2);
    expect(saidByCommands.filter(holds)).toEqual([]);
    const logs = (): string[] => [api.output(), worker.output()];
    expect(logs().filter(holds)).toEqual([]);
    // At the level that tells most.
    expect(/"level":"(debug|trace)"/.test(logs()[0]!)).toBe(true);
    expect(await inDatabase()).toEqual([]);
    expect(await inProcesses()).toEqual([]);

    // And all of these would have found it.
    expect(secrets.map((secret) => holds(`"authorization":"Bearer ${secret}"`))).toEqual(secrets.map(() => true));
    await pool.query(`update organizations set name = $1 where name = 'Umbrella'`, [`x ${rotated.secret}`]);
    expect(await inDatabase()).toEqual(['public.organizations']);
    const careless = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)', operator]);
    try {
      await eventually(async () => (await inProcesses()).length === 1, { what: 'it is seen in the list of processes' });
    } finally {
      careless.kill('SIGKILL');
    }
  }, 120_000);
});
