import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, openDatabase, type Database } from '#platform';
import { reportLatency, type SpawnedNode, spawnNode } from '#testing';
import { allRunsCompleted, expectHealthy } from './support/checks.ts';
import { createAcknowledged, createThread, getThread, inParallel } from './support/client.ts';
import { ATTACKS, type Aim } from './support/hostile/attacks.ts';
import { embeddedDataDir } from './support/newcomer.ts';
import { isLong } from './support/system.ts';
import { addTenant, type Tenant } from './support/tenants.ts';
import { percentile } from './support/times.ts';

// Real: the standalone process with its embedded PostgreSQL. API and worker share its event loop.

const LEASE_MS = 2_000;
/** How long the attack lasts in the long form. */
const WATCH_MS = 8_000;
/** Bodies that must be refused for their shape. In the short form, the attack goes on until then. */
const MIN_REFUSED = 9;
/** They hold their claims for as long as the attack lasts. */
const RUNS = 6;
const RUN_MS = WATCH_MS + 2_000;
/** In an earlier release, it was 2.0 to 5.7 s. */
const P50_MS = 200;

let home: string;
let running: SpawnedNode;
let database: Database;
let baseUrl: string;

async function start(): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'spool-standalone-'));
  const port = await findFreePort();
  running = spawnNode('dist/apps/standalone/main.js', [], {
    DATA_DIR: home,
    PORT: String(port),
    LEASE_MS: String(LEASE_MS),
    RATE_LIMIT_PER_MINUTE: '1000000000',
  });
  await running.waitForLine(/Spool is ready/, 60_000);
  const url = await readFile(join(home, 'database.url'), 'utf8');
  database = await openDatabase({ url, applicationName: 'e2e', maxConnections: 2 });
  baseUrl = /^BASE_URL=(.*)$/m.exec(await readFile(join(home, 'quickstart.env'), 'utf8'))![1]!;
}

async function stop(): Promise<void> {
  await database.close();
  await running.kill('SIGTERM');
  const dataDir = embeddedDataDir(running.output());
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
}

/** Returns a function that returns true until this time has passed. */
function during(ms: number): () => boolean {
  const endAt = performance.now() + ms;
  return () => performance.now() < endAt;
}

/** Sends bodies of 8 MiB on four connections, again and again. Returns the number of answers by status. */
async function attack(
  { token, agentId }: Tenant,
  goesOn: (refused: number) => boolean,
): Promise<Map<number | null, number>> {
  const { begin } = ATTACKS.find(({ name }) => name === 'deep bodies and bodies with many keys')!;
  const aim = { baseUrls: [baseUrl], token, from: '127.0.0.10', agents: { files: agentId } } as unknown as Aim;
  const answers = new Map<number | null, number>();
  while (goesOn(answers.get(400) ?? 0))
    for (const { status } of await begin(aim)) answers.set(status, (answers.get(status) ?? 0) + 1);
  return answers;
}

/** Creates and reads Threads, one after the other. Returns the times of the requests, milliseconds. */
async function timeRequests(tenant: Tenant, goesOn: () => boolean): Promise<number[]> {
  const times: number[] = [];
  const timed = async <T>(request: Promise<T>, startedAt = performance.now()): Promise<T> =>
    request.finally(() => times.push(performance.now() - startedAt));
  while (goesOn()) {
    const { body } = await timed(createThread(tenant, 'hello'));
    expect((await timed(getThread(tenant, body.thread.id))).status).toBe(200);
  }
  return times;
}

function report(answers: Map<number | null, number>, alone: number[], beside: number[]): void {
  const [p50, p99] = [percentile(beside, 0.5), percentile(beside, 0.99)];
  process.stderr.write(
    `standalone, bodies of 8 MiB: answers ${JSON.stringify([...answers])}; another's ${beside.length} requests: ` +
      `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, alone p50 ${percentile(alone, 0.5).toFixed(0)} ms\n`,
  );
  reportLatency(P50_MS, p50, 'the p50 of another tenant’s requests was');
}

test('bodies of 8 MiB from one tenant cost another no lease (standalone)', async () => {
  await start();
  try {
    const [hostile, other] = [
      await addTenant(database.pool, baseUrl, 'hostile'),
      await addTenant(database.pool, baseUrl, 'other'),
    ];
    const alone = isLong ? await timeRequests(other, during(WATCH_MS / 4)) : [];
    const runs = await inParallel(RUNS, RUNS, () => createAcknowledged(other, `/think ${RUN_MS}ms`));
    let isOver = false;
    const attacked = attack(hostile, isLong ? during(WATCH_MS) : (refused) => refused < MIN_REFUSED);
    const [answers, beside] = await Promise.all([
      attacked.finally(() => (isOver = true)),
      timeRequests(other, () => !isOver),
    ]);
    const requests = [alone, beside].map((times) => times.length / 2).reduce((sum, count) => sum + count);
    await allRunsCompleted(database, RUNS + requests, 60_000);
    const { rows } = await database.pool.query<{ type: string; count: number }>(
      `select type, count(*)::integer as count from events where run_id = any ($1) and type in ('run.claimed', 'run.requeued')
         group by 1`,
      [runs.map(({ runId }) => runId)],
    );
    expect(answers.get(400)).toBeGreaterThanOrEqual(MIN_REFUSED);
    // Each Run was claimed once.
    expect(rows).toEqual([{ type: 'run.claimed', count: RUNS }]);
    await expectHealthy(database);
    if (isLong) report(answers, alone, beside);
  } finally {
    await stop();
  }
}, 120_000);
