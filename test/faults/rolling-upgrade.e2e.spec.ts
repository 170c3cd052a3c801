import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import {
  asOwner,
  createTestDatabase,
  describeWithRedis,
  eventually,
  redisUrl,
  reportFigure,
  type SpawnedNode,
} from '#testing';
import { Balancer } from '../support/balancer.ts';
import { expectHealthy, expectWholeLog } from '../support/checks.ts';
import {
  getThread,
  inParallel,
  postEvents,
  readLog,
  send,
  type Caller,
  type LogEntry,
  type ThreadAnswer,
} from '../support/client.ts';
import { blocksOf } from '../support/documented-clients.ts';
import { newThread, say } from '../support/hanging-runs.ts';
import { FakeProvider, scriptText } from '../support/fake-provider.ts';
import { buildRelease, hasCommit, preloadOf, previousRelease } from '../support/previous-release.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { SpoolCommand } from '../support/spool-command.ts';
import { StandardLoad } from '../support/standard-load.ts';
import { isLong, startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

const PAIRS = isLong ? 2 : 1;
const THREADS = isLong ? 10 : 4;
const WAITING = isLong ? 10 : 2;
/** How long both releases work side by side, under load. */
const TOGETHER_MS = isLong ? 10_000 : 500;
/** The lease of the workers that the test kills, milliseconds. */
const LEASE_MS = isLong ? 3_000 : 2_000;
/** Long enough for the balancer to have probed, even if it is late. */
const DRAIN_MS = 1_500;

/** Manifests that the previous release runs. Only `fine` still runs with the default settings of this one. */
const STOPPED_AGENTS = ['{ env: SOME_API_KEY }', '{ env: TICKETS_TOKEN }', '{ file: /etc/hostname }', null]
  .map((apiKey, i) => {
    const key = apiKey === null ? '' : `, apiKey: ${apiKey}`;
    const model = `{ provider: openai-compatible, name: m, baseUrl: 'http://127.0.0.1:9/v1'${key} }`;
    const servers = apiKey === null ? '[{ name: tickets, command: npx, args: [tickets] }]' : '[]';
    const name = ['fine', 'variable', 'file', 'program'][i];
    return `name: ${name}\nharness: { name: model }\nmodel: ${model}\ntoolServers: ${servers}\n`;
  })
  .join('---\n');

const previous = previousRelease();
const isThere = hasCommit(previous.commit);
const missing = `The previous release is not in this clone; run git fetch --depth=1 origin ${previous.commit}`;
const describeUpgrade = isThere ? describeWithRedis : describe.skip;

test('this release has a different version than the previous one', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(version).not.toBe(previous.version);
});

if (isThere) {
  test('previous-release.json names the version that its commit has', () => {
    const manifest = execFileSync('git', ['show', `${previous.commit}:package.json`], { encoding: 'utf8' });
    expect(JSON.parse(manifest)).toMatchObject({ version: previous.version });
  });
} else if (process.env['CI'] === 'true') {
  test('the clone contains the commit of the previous release', () => {
    throw new Error(missing);
  });
} else process.stderr.write(`SKIPPED: the rolling upgrade. ${missing}\n`);

(isThere ? test : test.skip)(
  'doctor names, before the migration, each Agent that the upgrade stops, and the settings that would allow it',
  async () => {
    const main = join(buildRelease(previous), 'dist/apps/cli/main.js');
    const database = await createTestDatabase();
    const folder = await mkdtemp(join(tmpdir(), 'spool-upgrade-'));
    try {
      const env = { DATABASE_URL: database.ownerUrl, TICKETS_TOKEN: 'secret', SOME_API_KEY: 'secret' };
      const [before, after] = [new SpoolCommand(env, main), new SpoolCommand(env)];
      await inSql(database.ownerUrl, 'drop schema public cascade; create schema public');
      await before.json('migrate');
      await before.json('org', 'create', 'Acme', '--local');
      const file = join(folder, 'agents.yaml');
      await writeFile(file, STOPPED_AGENTS);
      await before.json('agent', 'apply', '-f', file, '--org', 'Acme', '--publish', '--yes', '--local');
      const { out } = await after.run(['doctor', '--local', '--json']);
      const checks = JSON.parse(out) as { name: string; status: string; message: string }[];
      const { status, message } = checks.find(({ name }) => name === 'agents')!;
      expect(checks.find(({ name }) => name === 'migrations')?.status).toBe('failed');
      expect(status).toBe('warning');
      for (const stopped of ['variable', 'file', 'program']) expect(message).toMatch(new RegExp(`\\b${stopped} \\(`));
      expect(message).not.toMatch(/\bfine \(/);
      expect(message.split('set: ')[1]?.split(' ').toSorted()).toEqual([
        'MANIFEST_FILES=/etc/hostname',
        'MANIFEST_VARIABLES=*_API_KEY,TICKETS_TOKEN',
        'TOOL_SERVER_COMMANDS=/path/to/npx',
      ]);
      expect(checks.find(({ name }) => name === 'sandbox')?.status).not.toBe('failed');
    } finally {
      await rm(folder, { recursive: true });
      await database.drop();
    }
  },
  300_000,
);

async function inSql(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(text);
  await client.end();
}

interface Pair {
  api: ApiProcess;
  worker: SpawnedNode;
}

describeUpgrade('the previous release and this one', () => {
  let release: string;
  let fakeProvider: FakeProvider;
  let system: System;
  let balancer: Balancer;
  let pairs: Pair[];
  let anyApi: Caller;

  beforeAll(async () => {
    release = buildRelease(previous);
    fakeProvider = await FakeProvider.start();
    const env = { ...fakeProvider.env, SHUTDOWN_DRAIN_MS: String(DRAIN_MS) };
    // Migrated by this release, as an upgrade begins.
    system = await startSystem({ queueUrl: redisUrl().url, env, manifest: fakeProvider.manifest });
    balancer = await Balancer.start();
    pairs = await Promise.all(Array.from({ length: PAIRS }, startOld));
    anyApi = pairs[0]!.api.caller;
  }, 300_000);

  afterAll(async () => {
    await system.stop();
    await balancer.close();
    await fakeProvider.close();
  });

  async function startPair(...of: Parameters<System['startApi']>): Promise<Pair> {
    const [api, worker] = await Promise.all([system.startApi(...of), system.startWorker(...of)]);
    await balancer.add(api.caller);
    return { api, worker };
  }

  const startNew = (): Promise<Pair> => startPair();

  /** Starts it as the owner, because the release before deletes events by itself. */
  const startOld = (): Promise<Pair> =>
    startPair({ ...preloadOf(release), DATABASE_URL: asOwner(system.databaseUrl) }, release);

  async function stop({ api, worker }: Pair): Promise<void> {
    const exits = await Promise.all([api.process.kill('SIGTERM'), worker.kill('SIGTERM')]);
    expect(exits).toEqual(Array(2).fill({ code: 0, signal: null }));
    balancer.remove(api.caller);
  }

  /** The first ones go as the others come. */
  async function replaceAll(start: () => Promise<Pair>): Promise<void> {
    const old = pairs.splice(0);
    for (const _ of old) pairs.push(await start());
    await sleep(TOGETHER_MS);
    for (const pair of old) await stop(pair);
  }

  const caller = (): Caller => balancer.through(anyApi);

  async function decide(threadId: string, n: number): Promise<void> {
    const questions = (): Promise<LogEntry[]> =>
      readLog(caller(), threadId).then((log) => log.filter(({ type }) => type === 'tool.confirmation.required'));
    const asked = await eventually(async () => ((await questions()).length === 2 ? questions() : null), {
      what: 'it asks',
      timeoutMs: 20_000,
    });
    const decision = { type: 'permission_decision', requestId: asked[n]!.content, decision: 'allow_once' };
    expect((await postEvents(caller(), threadId, decision)).status).toBe(200);
  }

  test(
    'work together, forth and back, under load: no request fails, and Runs that wait for a person complete',
    async () => {
      const random = seededRandom(freshSeed(), 'rolling upgrade');
      let isRolling = true;
      const load = new StandardLoad(
        { database: system.database, fakeProvider, callers: [caller], random },
        { threads: THREADS, pauseMs: 30, keepOn: () => isRolling },
      );
      const asks = scriptText('asks', { pieces: 4, pauseMs: 0, tools: ['note', 'note'] });
      const waiting = await inParallel(WAITING, 4, async () => {
        const threadId = await newThread(caller());
        return { threadId, runId: (await say(caller(), threadId, asks)).id };
      });
      for (const { threadId } of waiting) await decide(threadId, 0);
      await replaceAll(startNew);
      // Half of them over the upgrade, the others over the way back as well.
      for (const { threadId } of waiting.slice(0, WAITING / 2)) await decide(threadId, 1);
      await replaceAll(startOld);
      for (const { threadId } of waiting.slice(WAITING / 2)) await decide(threadId, 1);
      isRolling = false;
      await load.finished(upTo(60_000));

      const { requests } = load.client;
      reportFigure(`upgrade and back: ${requests.length} requests`);
      expect(requests.filter(({ outcome }) => outcome !== 'ok')).toEqual([]);
      expect(balancer.failures).toEqual([]);
      for (const { threadId } of waiting) {
        const isDone = async (): Promise<boolean> =>
          (await getThread(caller(), threadId)).body.run?.status === 'completed';
        await eventually(isDone, { what: 'it is completed', timeoutMs: 20_000 });
      }
      for (const { runId } of waiting) {
        const effects = fakeProvider.toolUses.filter((use) => use.runId === runId && use.tookEffect);
        expect(new Set(effects.map(({ toolCallId }) => toolCallId)).size).toBe(2);
        expect(effects).toHaveLength(2);
      }
      await load.holds();
    },
    upTo(120_000),
  );
});

describeUpgrade('a Thread and a Run of both releases', () => {
  let release: string;
  let fakeProvider: FakeProvider;
  let system: System;
  let newApi: Caller;
  let oldApi: Caller;
  let programs: string;
  /** The workers that run, and whether they are of this release. */
  let workers: { worker: SpawnedNode; isNew: boolean }[] = [];

  beforeAll(async () => {
    release = buildRelease(previous);
    fakeProvider = await FakeProvider.start();
    const env = { ...fakeProvider.env, LEASE_MS: String(LEASE_MS), BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` };
    system = await startSystem({ queueUrl: redisUrl().url, env, manifest: fakeProvider.manifest });
    const apis = await Promise.all([system.startApi(), system.startApi(preloadOf(release), release)]);
    [newApi, oldApi] = [apis[0].caller, apis[1].caller];
    programs = await mkdtemp(join(tmpdir(), 'spool-messages-'));
    for (const { file, code } of blocksOf('events.md')) {
      if (file.endsWith('messages.mjs')) await writeFile(join(programs, file), code);
    }
  }, 300_000);

  afterAll(async () => {
    const exits = await Promise.all(workers.map(({ worker }) => worker.kill('SIGTERM')));
    await system.stop();
    await fakeProvider.close();
    await rm(programs, { recursive: true, force: true });
    expect(exits).toEqual([{ code: 0, signal: null }]);
  });

  /** Leaves one worker, of that release. The survivor of one test is the worker that the next one kills. */
  async function onlyWorker(isNew: boolean): Promise<SpawnedNode> {
    const isWanted = (one: { isNew: boolean }): boolean => one.isNew === isNew;
    await Promise.all(workers.filter((one) => !isWanted(one)).map(({ worker }) => worker.kill('SIGKILL')));
    workers = workers.filter(isWanted);
    return workers[0]?.worker ?? startWorker(isNew);
  }

  async function startWorker(isNew: boolean): Promise<SpawnedNode> {
    const worker = await (isNew ? system.startWorker() : system.startWorker(preloadOf(release), release));
    workers.push({ worker, isNew });
    return worker;
  }

  /** Returns the output of the program of docs/api/events.md: the messages of the extended log. */
  async function shownMessages({ baseUrl, token }: Caller, threadId: string): Promise<string> {
    const env = { ...process.env, BASE_URL: baseUrl, ACCESS_TOKEN: token };
    const program = join(programs, 'show-messages.mjs');
    return (await promisify(execFile)(process.execPath, [program, threadId], { env })).stdout;
  }

  /** Expects both releases to answer with the same Thread, list and log, without the new optional fields. */
  async function expectSameAnswers(threadId: string): Promise<void> {
    const list = `/agents/${newApi.agentId}/threads`;
    for (const path of [`/threads/${threadId}`, list, `/threads/${threadId}/events?limit=1000`]) {
      const [byOld, byNew] = [await send(oldApi, 'GET', path), await send(newApi, 'GET', path)];
      expect({ path, status: byOld.status }).toEqual({ path, status: 200 });
      const origin = new RegExp(new URL(newApi.baseUrl).origin, 'g');
      const text = JSON.stringify(byNew.body).replace(origin, new URL(oldApi.baseUrl).origin);
      expect(byOld.body).toEqual(JSON.parse(text));
    }
  }

  /** Returns for each claim whether its worker numbers steps, and in how many appends it claimed and started. */
  async function claimsOf(runId: string): Promise<{ numbersSteps: boolean; appends: number }[]> {
    const { rows } = await system.database.pool.query<{ numbersSteps: boolean; appends: number }>(
      `select bool_or(data ? 'step') as "numbersSteps",
              count(distinct transaction_id) filter (where type like 'run.%')::integer as appends
       from events where run_id = $1 and type in ('run.claimed', 'run.started', 'assistant.text_added')
       group by attempt order by attempt`,
      [runId],
    );
    return rows;
  }

  test.each([
    { survivor: 'the previous', killed: 'this', isNew: true },
    { survivor: 'this', killed: 'the previous', isNew: false },
  ])(
    '$survivor release completes a Run of a killed worker of $killed release, and its Thread keeps externalRef and title',
    async ({ isNew }) => {
      const [externalRef, title] = [`order-${isNew}`, `Order ${isNew}`];
      const created = await send<ThreadAnswer>(newApi, 'POST', `/agents/${newApi.agentId}/threads`, {
        userId: 'tester',
        externalRef,
      });
      expect(created.status).toBe(201);
      const { id: threadId } = created.body.thread;
      expect((await send(newApi, 'PATCH', `/threads/${threadId}`, { title })).status).toBe(200);
      await expectSameAnswers(threadId);

      const doomed = await onlyWorker(isNew);
      const hold = fakeProvider.hold('half said', (call) => call.threadId === threadId);
      const script = scriptText('half said', { pieces: 6, pauseMs: 50, tools: [] });
      const { id: runId } = await say(oldApi, threadId, script);
      expect((await hold.reached).pid).toBe(doomed.pid);
      const survivor = await startWorker(!isNew);
      const isStored = async (): Promise<boolean> =>
        (await readLog(newApi, threadId)).some(({ content }) => content.includes('Piece 2'));
      await eventually(isStored, { what: 'half of the answer is stored', timeoutMs: 20_000 });
      expect(await shownMessages(newApi, threadId)).toContain('Piece 2');
      await expectSameAnswers(threadId);
      await doomed.kill('SIGKILL');
      workers = workers.filter(({ worker }) => worker !== doomed);
      const isDone = async (): Promise<boolean> => (await getThread(oldApi, threadId)).body.run?.status === 'completed';
      await eventually(isDone, { what: 'the Run is completed', timeoutMs: 30_000 });

      const calls = fakeProvider.modelCalls.filter((call) => call.runId === runId);
      expect(calls.map(({ pid }) => pid)).toEqual([doomed.pid, survivor.pid]);
      const answer = calls[1]!.text;
      expectWholeLog(await readLog(oldApi, threadId), runId, answer);
      expect(await shownMessages(newApi, threadId)).toBe(`${answer}\n`);
      const claims = [
        { numbersSteps: true, appends: 2 },
        { numbersSteps: false, appends: 1 },
      ];
      expect(await claimsOf(runId)).toEqual(isNew ? claims : claims.toReversed());
      await expectSameAnswers(threadId);
      const found = await send(newApi, 'GET', `/threads?externalRef=${externalRef}&extended=true`);
      expect(found.body['threads']).toEqual([expect.objectContaining({ id: threadId, externalRef, title })]);
      const read = await send(newApi, 'GET', `/threads/${threadId}?extended=true`);
      expect(read.body['thread']).toMatchObject({ externalRef, title, lastMessage: { role: 'agent' } });
      await expectHealthy(system.database);
    },
    upTo(120_000),
  );

  async function upload({ baseUrl, token, agentId }: Caller): Promise<string> {
    const body = new FormData();
    body.append('file', new Blob(['hello']), 'a.txt');
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${baseUrl}/agents/${agentId}/files`, { method: 'POST', headers, body });
    expect(response.status).toBe(201);
    return ((await response.json()) as { file: { id: string } }).file.id;
  }

  test(
    'browser tokens need this release, and the previous one serves what they made to their service token',
    async () => {
      const { token } = system.serviceToken;
      const [byNew, byOld] = [newApi, oldApi].map((api) => ({ ...api, token })) as [Caller, Caller];
      const rights = { userId: 'ada', verbs: ['read', 'send', 'upload'] };
      const ada = {
        ...newApi,
        token: (await send<{ token: string }>(byNew, 'POST', '/browser-tokens', rights)).body.token,
      };
      const agent = `/agents/${newApi.agentId}`;
      expect((await send({ ...oldApi, token: ada.token }, 'GET', agent)).status).toBe(401);

      const key = { 'idempotency-key': 'first' };
      const create = (by: Caller, userId: string, headers = {}) =>
        send<ThreadAnswer>(by, 'POST', `${agent}/threads`, { userId }, headers);
      const { id: threadId } = (await create(ada, 'ada', key)).body.thread;
      expect((await create(byOld, 'ada', key)).body.thread.id).not.toBe(threadId);
      const script = scriptText('with a file', { pieces: 1, pauseMs: 0, tools: [] });
      const resources = [{ type: 'file', file_id: await upload(ada) }];
      expect((await postEvents(byOld, threadId, { type: 'user_message', text: script, resources })).status).toBe(200);
      await onlyWorker(true);
      const isDone = async (): Promise<boolean> => (await getThread(ada, threadId)).body.run?.status === 'completed';
      await eventually(isDone, { what: 'the Run is completed', timeoutMs: 30_000 });

      const bobs = (await create(byOld, 'bob')).body.thread.id;
      const hidden = [`/threads/${bobs}`, `/files/${await upload(byOld)}`];
      const statuses = await Promise.all(hidden.map(async (path) => (await send(ada, 'GET', path)).status));
      expect(statuses).toEqual([404, 404]);
    },
    upTo(60_000),
  );
});
