import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import {
  AgentCatalogue,
  agentManifestSchema,
  createAgent,
  harnessesByName,
  modelHarness,
  publishAgentVersion,
  runLimits,
  type Harness,
  type Tool,
} from '#agents';
import type { Command } from '#domain';
import { CommandHandler, ThreadStore, type RunJob } from '#event-store';
import { BlobKeeper, DiskBlobStore, FileStore } from '#files';
import { ByteBudget, createLogger, openDatabase, openPolicyVersions, PolicyWatch } from '#platform';
import { LeaseKeeper, LeaseThread, RunEngine, TRANSCRIPT_BOUNDS } from '#run-engine';
import { TaskPool } from '#task-pool';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import { collectGarbage, figuresOf, type Side } from './measure.ts';
import type { Services } from './services.ts';
import { SIZES } from './sizes.ts';
import { handled, LEASE_MS, newId } from './threads.ts';

const STEPS = 99;
const RESULT_BYTES = 200 * 1024;
/** A step late in a Run costs what an early one does. */
const TARGET = { atMost: 1.2 };

/** From a tool's result to the next model step, early in a Run of large results and late in it; and what it holds. */
export function longRun({ services, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const run = await runner(services, defer);
    const { heapMb, boot } = await run({ heapAt: [10, 50, STEPS] });
    const heaps = heapMb.map((mb) => mb.toFixed(1)).join(', ');
    process.stderr.write(`long-run: heap after step 10, 50, ${STEPS}: ${heaps} MB\n`);
    process.stderr.write(`long-run: booted again, ${boot.mb.toFixed(1)} MB are read in ${boot.ms.toFixed(0)} ms\n`);
    const measured = forBothSides(async () => {
      const runs: number[][] = [];
      for (let i = 0; i < SIZES.longRuns; i++) {
        collectGarbage();
        runs.push((await run({})).stepMs);
      }
      return runs;
    });
    // The median over ten steps in a row of some Runs, so that one that waits for a checkpoint says nothing.
    const steps = (from: number): Side => {
      return async () => {
        const times = (await measured()).flatMap((stepMs) => stepMs.slice(from, from + 10));
        return figuresOf(
          times,
          times.reduce((a, b) => a + b, 0),
        );
      };
    };
    for (const from of [20, 45, 85]) {
      const name = `a step after ${from} with results of 200 KB, beside one after 5`;
      await compare({ name, clients: 1, by: 'p50Ms', subject: steps(from), floors: { own: steps(5) }, target: TARGET });
    }
  });
}

/** What both sides of a round see of the same Runs: what else the machine does then slows both down alike. */
function forBothSides<T>(measure: () => Promise<T>): () => Promise<T> {
  let forTheOther: T | null = null;
  return async () => {
    const measured = forTheOther ?? (await measure());
    forTheOther = forTheOther === null ? measured : null;
    return measured;
  };
}

interface Measured {
  /** Of each step but the first: from the result before it to its beginning. */
  stepMs: number[];
  heapMb: number[];
  /** What the next claim would read of it. */
  boot: { mb: number; ms: number };
}

/** Answers how to execute one more Run. All is as in a worker, but for the model and its tool. */
async function runner(services: Services, defer: Defer): Promise<(of: { heapAt?: number[] }) => Promise<Measured>> {
  const url = await services.newDatabase(defer);
  const database = await openDatabase({ url, applicationName: 'bench', maxConnections: 4 });
  defer(() => database.close());
  const { pool } = database;
  const folder = await mkdtemp(join(tmpdir(), 'spool-bench-'));
  defer(() => rm(folder, { recursive: true }));
  const store = new ThreadStore(pool);
  const handler = new CommandHandler({ store, leaseMs: LEASE_MS });
  const logger = createLogger('warn', 'bench');
  const holder = newId();
  const renewer = new LeaseThread({ database: { url, applicationName: 'bench' }, holder, leaseMs: LEASE_MS, logger });
  const leases = new LeaseKeeper({ renewer, leaseMs: LEASE_MS, logger });
  let measured: Measured;
  let heapAt: number[];
  const harnesses = harnessesByName([
    fetching((step, ms) => {
      measured.stepMs.push(ms);
      if (!heapAt.includes(step)) return;
      collectGarbage();
      measured.heapMb.push(process.memoryUsage().heapUsed / 1024 ** 2);
    }),
  ]);
  const watch = new PolicyWatch({ versions: openPolicyVersions(url) });
  const tasks = new TaskPool({ size: 1, memoryBytes: 256 * 1024 ** 2, logger });
  defer(() => tasks.close());
  const engine = new RunEngine({
    ...{ store, handler, pool, harnesses, leases, holder, logger },
    leaseMs: LEASE_MS,
    catalogue: new AgentCatalogue({ pool, watch, harnesses }),
    tasks,
    memory: { budget: new ByteBudget({ process: Infinity, share: Infinity }) },
    blobs: new BlobKeeper({ pool, store: new DiskBlobStore(folder), logger }),
    files: new FileStore(pool),
    folderLimits: { maxFiles: 100, maxBytes: 1024 ** 2, maxFileBytes: 1024 ** 2 },
    enqueueSoon: () => undefined,
    onLimited: () => undefined,
    slotsPerOrganization: () => Promise.resolve(null),
    isPaused: () => Promise.resolve(false),
  });
  const newRun = await agentWith(pool, handler);
  return async (of) => {
    measured = { stepMs: [], heapMb: [], boot: { mb: NaN, ms: NaN } };
    heapAt = of.heapAt ?? [];
    const job = await newRun();
    await engine.executeJob(job);
    const before = performance.now();
    const events = await store.readTranscript(job.threadId, TRANSCRIPT_BOUNDS, { hasStops: true });
    const ms = performance.now() - before;
    measured.boot = { mb: Buffer.byteLength(JSON.stringify(events)) / 1024 ** 2, ms };
    if (measured.stepMs.length !== STEPS) throw new Error(`a Run took ${measured.stepMs.length} steps, not ${STEPS}`);
    return measured;
  };
}

/**
 * The harness of production, on a model that fetches again and again; it answers in this process, so that no network is
 * measured. `onStep` hears of each step behind a result how long it took until the model was asked, milliseconds.
 */
function fetching(onStep: (step: number, ms: number) => void): Harness {
  let fetchedAt = 0;
  let step = 0;
  const tool: Tool = {
    ...{ name: 'fetch', title: 'Fetch', description: 'Fetches.', inputSchema: {}, policy: 'allow', idempotent: true },
    execute: () => {
      // Each its own, and nothing that PostgreSQL could make smaller.
      const text = randomBytes((RESULT_BYTES * 3) / 4).toString('base64');
      fetchedAt = performance.now();
      return Promise.resolve({ text, isError: false });
    },
  };
  const answer = (): Promise<Response> => {
    if (step > 0) onStep(step, performance.now() - fetchedAt);
    const more = step < STEPS;
    step = more ? step + 1 : 0;
    return Promise.resolve(new Response(chunksOf(more), { headers: { 'content-type': 'text/event-stream' } }));
  };
  return modelHarness({ fetch: answer, tools: () => Promise.resolve([tool]) });
}

/** An answer of OpenAI's chat completions: one more call of the tool, or the end. */
function chunksOf(more: boolean): string {
  const call = { index: 0, id: 'call', type: 'function', function: { name: 'fetch', arguments: '{}' } };
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'answer', created: 0, model: 'any', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const said = chunk({ role: 'assistant', ...(more ? { tool_calls: [call] } : { content: 'Done.' }) }, null);
  return `${said}${chunk({}, more ? 'tool_calls' : 'stop')}data: [DONE]\n\n`;
}

/** Answers how to queue a Run in a new Thread of an agent with the harness. */
async function agentWith(pool: Pool, handler: CommandHandler): Promise<() => Promise<RunJob>> {
  const organizationId = newId();
  await pool.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Bench']);
  const manifest = agentManifestSchema.parse({
    name: 'Fetching',
    harness: { name: 'model' },
    model: { provider: 'openai-compatible', name: 'any', baseUrl: 'http://model.example/v1' },
  });
  const agentId = await createAgent(pool, { organizationId, manifest });
  const agentVersion = (await publishAgentVersion(pool, agentId, manifest)) ?? 0;
  const limits = runLimits(manifest);
  const owner = { personId: null, serviceTokenId: null };
  return async () => {
    const [threadId, runId] = [newId(), newId()];
    const run = { runId, agentVersion, limits };
    const commands: Command[] = [
      { type: 'create_thread', agentId, organizationId, kind: 'cattle', userId: 'bench', owner },
      { type: 'add_message', text: 'Fetch.', requestId: null, fileIds: [], run, whenBusy: 'reject', by: null },
    ];
    await handled(handler, { threadId, commands });
    return { threadId, runId, dispatch: 1 };
  };
}
