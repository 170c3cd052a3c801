import { ulid } from 'ulid';
import { agentManifestSchema, createAgent, publishAgentVersion, runLimits } from '#agents';
import type { Command, StoredEvent } from '#domain';
import { CommandHandler, ThreadStore } from '#event-store';
import { openDatabase, type Database } from '#platform';
import {
  createTestDatabase,
  eventually,
  reportLatency,
  type SpawnedNode,
  spawnNode,
  type TestDatabase,
} from '#testing';

const LEASE_MS = 1_500;

let testDatabase: TestDatabase;
let database: Database;
let store: ThreadStore;
const workers: SpawnedNode[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'worker spec', maxConnections: 4 });
  store = new ThreadStore(database.pool);
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill('SIGKILL')));
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function startWorker(env: Record<string, string> = {}): Promise<SpawnedNode> {
  const settings = { DATABASE_URL: testDatabase.url, LEASE_MS: String(LEASE_MS), SHUTDOWN_GRACE_MS: '200', ...env };
  const worker = spawnNode('dist/apps/worker/main.js', [], settings);
  workers.push(worker);
  await worker.waitForLine(/"msg":"worker ready"/, 45_000);
  return worker;
}

/** Appends like the API, but does not enqueue the Run, so that the dispatcher has to find it. */
async function say(text: string) {
  const organizationId = ulid();
  const manifest = { name: 'Echo', harness: { name: 'echo', allowCrash: true } };
  await database.pool.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Specs']);
  const agentId = await createAgent(database.pool, { organizationId, manifest });
  await publishAgentVersion(database.pool, agentId, manifest);
  const [threadId, runId] = [ulid(), ulid()];
  const owner = { personId: null, serviceTokenId: null };
  const run = { runId, agentVersion: 1, limits: runLimits(agentManifestSchema.parse(manifest)) };
  const commands: Command[] = [
    { type: 'create_thread', agentId, organizationId, kind: 'cattle', userId: 'user-1', owner },
    { type: 'add_message', text, requestId: null, fileIds: [], run, whenBusy: 'reject', by: null },
  ];
  await new CommandHandler({ store, leaseMs: LEASE_MS }).handle({ threadId, commands });
  return { threadId, runId };
}

const stream = async (threadId: string) =>
  (await store.readStream(threadId, 0, { maxEvents: 10_000 })) as StoredEvent[];
const types = async (threadId: string) => (await stream(threadId)).map(({ type }) => type);

function eventuallyHas(threadId: string, type: StoredEvent['type']) {
  return eventually(async () => (await types(threadId)).includes(type), { what: `${type} is stored` });
}

describe('a worker process', () => {
  it('executes Runs and hands them over on SIGTERM', async () => {
    const worker = await startWorker();
    const { threadId } = await say('hello');
    await eventuallyHas(threadId, 'run.completed');

    const long = await say('a b c d /pause 60s');
    await eventuallyHas(long.threadId, 'assistant.text_added');
    expect(await worker.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    const requeued = (await stream(long.threadId)).filter((event) => event.type === 'run.requeued');
    expect(requeued.at(-1)?.data).toMatchObject({ reason: 'handed_over', losses: 0, delayMs: 0 });
    const { rows } = await database.pool.query('select from workers');
    expect(rows).toHaveLength(0);
  });

  const followed = async () => {
    const both = await Promise.all([startWorker(), startWorker()]);
    const { threadId } = await say('/pieces 60 /pause 50');
    await eventuallyHas(threadId, 'assistant.text_added');
    const claim = (await stream(threadId)).find((event) => event.type === 'run.claimed');
    const isHolder = (worker: SpawnedNode) => worker.output().includes(`"holder":"${claim?.data.holder}"`);
    // Determined now, because the reaper of the other worker also logs it after the loss.
    const holder = both.find(isHolder);
    await holder?.kill('SIGKILL');
    const killedAt = Date.now();
    await eventuallyHas(threadId, 'run.requeued');
    const tookMs = Date.now() - killedAt;
    await eventuallyHas(threadId, 'run.completed');
    const all = await types(threadId);
    // A worker that the machine pauses also loses its lease, which is correct.
    const [claims, requeues] = ['run.claimed', 'run.requeued'].map(
      (name) => all.filter((type) => type === name).length,
    );
    expect(claims).toBe(requeues! + 1);
    const other = both.find((worker) => worker !== holder);
    expect(await other?.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    reportLatency(LEASE_MS + 2_000, tookMs, 'another worker took over after');
  };
  test('is replaced by another worker when it is killed during its text', followed, 60_000);

  it('continues a Run in another worker after the Run crashed its process', async () => {
    const both = await Promise.all([startWorker(), startWorker()]);
    const { threadId } = await say('boom /crash');
    const crashed = await Promise.race(both.map(({ exited }) => exited));
    expect(crashed).toEqual({ code: null, signal: 'SIGKILL' });
    await eventuallyHas(threadId, 'run.completed');
  });

  it('does not start with invalid settings and names them in one line', async () => {
    const worker = spawnNode('dist/apps/worker/main.js', [], { DATABASE_URL: 'mysql://x', LEASE_MS: 'soon' });
    expect(await worker.exited).toEqual({ code: 1, signal: null });
    const lines = worker.output().trim().split('\n');
    expect(lines).toEqual([expect.stringMatching(/^Wrong configuration: .*DATABASE_URL.*LEASE_MS/)]);
  });
});
