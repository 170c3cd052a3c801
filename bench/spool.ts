import pg from 'pg';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { findFreePort, loadConfig } from '#platform';
import { BASE_PATH, CREATE_THREAD, type LoadAnswer, type LoadOrder } from './load/order.ts';
import type { Side } from './measure.ts';
import { startNode, type NodeProcess } from './processes.ts';
import type { Services } from './services.ts';
import type { Defer } from './clean-up.ts';

/** The defaults of API and worker. The floors use the same values. */
const defaults = loadConfig({});
export const POOL_SIZE = defaults.DATABASE_POOL_SIZE;
export const SLOTS = defaults.WORKER_SLOTS;

/** Settings of API and worker for experiments, as JSON: `BENCH_SETTINGS='{"DATABASE_POOL_SIZE":"5"}'`. */
export const OTHER_SETTINGS = JSON.parse(process.env['BENCH_SETTINGS'] ?? '{}') as Record<string, string>;

/** Number of service tokens that the clients share, like those of a few back ends. The recorded figures used this number. */
const TOKENS = 4;

/** A database with a published echo agent that does not pause, and with service tokens that may call it. */
export interface Installation {
  databaseUrl: string;
  redisUrl: string;
  queueName: string;
  agentId: string;
  tokens: string[];
}

export async function install(services: Services, defer: Defer): Promise<Installation> {
  const { redisUrl } = services;
  if (redisUrl === null) throw new Error('This benchmark needs Redis: set REDIS_URL');
  return installOn(await services.newDatabase(defer), redisUrl, services.newName());
}

/** Installs the echo agent and the tokens on a migrated database. */
export async function installOn(databaseUrl: string, redisUrl: string, queueName: string): Promise<Installation> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const access = new AccessStore(pool);
    const organizationId = await access.createOrganization('Bench');
    const manifest = { name: 'echo', harness: { name: 'echo', pauseMs: 0 } };
    const agentId = await createAgent(pool, { organizationId, manifest });
    await publishAgentVersion(pool, agentId, manifest);
    const service = { kind: 'service', organizationId, agentIds: [agentId], name: 'bench' } as const;
    const tokens: string[] = [];
    while (tokens.length < TOKENS) tokens.push((await access.mintToken(service)).token);
    return { databaseUrl, redisUrl, queueName, agentId, tokens };
  } finally {
    await pool.end();
  }
}

const READY_WITHIN_MS = 30_000;

/** Starts the built API with its default settings, except for `more`, addresses, and a rate limit that is never reached. */
export async function startApi(
  spool: Installation,
  defer: Defer,
  profiled: boolean,
  more: Record<string, string> = {},
): Promise<NodeProcess & { origin: string }> {
  const port = await findFreePort();
  const api = start('apps/api/main.js', defer, { ...settingsOf(spool), ...more, PORT: `${port}` }, profiled);
  const origin = `http://127.0.0.1:${port}`;
  const giveUpAt = Date.now() + READY_WITHIN_MS;
  while (!(await isReady(origin))) {
    if (Date.now() > giveUpAt) throw new Error(`the API is not ready. It has printed:\n${api.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { ...api, origin };
}

function isReady(origin: string): Promise<boolean> {
  return fetch(`${origin}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}

export function startWorker(
  spool: Installation,
  defer: Defer,
  profiled: boolean,
  more: Record<string, string> = {},
): NodeProcess {
  return start('apps/worker/main.js', defer, { ...settingsOf(spool), ...more }, profiled);
}

const settingsOf = ({ databaseUrl, redisUrl, queueName }: Installation): Record<string, string> => ({
  RATE_LIMIT_PER_MINUTE: '1000000000',
  DATABASE_URL: databaseUrl,
  QUEUE_URL: redisUrl,
  REDIS_URL: redisUrl,
  QUEUE_NAME: queueName,
  ...OTHER_SETTINGS,
});

/** A script of bench/floor. */
type FloorPart = 'api' | 'worker' | 'plain-api' | 'composed' | 'composed-worker';

/** Starts a hand-written process. The process waits for its options before it begins. */
export function startFloor(part: FloorPart, defer: Defer): NodeProcess {
  return start(`bench/floor/${part}.js`, defer);
}

/** Starts the load generator process. It executes one order after the other. */
export function startLoad(defer: Defer): (order: LoadOrder) => Promise<LoadAnswer> {
  const load = start('bench/load/main.js', defer);
  return (order) => load.ask<LoadAnswer>(order);
}

/** Returns a side that sends the flow to an API. */
export function sideOf(load: (order: LoadOrder) => Promise<LoadAnswer>, order: Omit<LoadOrder, 'until'>): Side {
  return async (forMs) => (await load({ ...order, until: { ms: forMs } })).figures;
}

function start(script: string, defer: Defer, env?: Record<string, string>, profiled?: boolean): NodeProcess {
  const started = startNode(script, env, profiled);
  defer(() => started.stop());
  return started;
}

/** One Thread with a Run, made as the load makes them. */
export async function createOneThread(
  origin: string,
  { agentId, tokens }: Installation,
  keyed: boolean,
): Promise<{ threadId: string; answer: string }> {
  const answered = await fetch(`${origin}${BASE_PATH}/agents/${agentId}/threads`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${tokens[0]}`,
      'Content-Type': 'application/json',
      ...(keyed ? { 'Idempotency-Key': 'a-key-to-be-recorded' } : {}),
    },
    body: CREATE_THREAD,
  });
  const answer = await answered.text();
  if (answered.status !== 201) throw new Error(`${answered.url} returned ${answered.status}: ${answer.slice(0, 300)}`);
  const { thread } = JSON.parse(answer) as { thread: { id: string } };
  return { threadId: thread.id, answer };
}

/** Waits until the Thread's Run has ended. */
export async function untilIdle(origin: string, { tokens }: Installation, threadId: string): Promise<void> {
  const url = `${origin}${BASE_PATH}/threads/${threadId}/events/stream?until=idle`;
  const stream = await fetch(url, {
    headers: { Authorization: `Bearer ${tokens[0]}` },
    signal: AbortSignal.timeout(10_000),
  });
  const text = await stream.text();
  if (!stream.ok) throw new Error(`GET ${url} returned ${stream.status}: ${text.slice(0, 300)}`);
  if (!text.includes('run.completed')) throw new Error(`the Run did not complete: ${text}`);
}
