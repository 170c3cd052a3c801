import pg from 'pg';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { findFreePort, loadConfig } from '#platform';
import { BASE_PATH, CREATE_THREAD, type LoadOrder } from './load/order.ts';
import type { Figures } from './measure.ts';
import { startNode, type NodeProcess } from './processes.ts';
import type { Services } from './services.ts';
import type { Defer } from './clean-up.ts';

/** What processes have by default; the floors get the same. */
export const { DATABASE_POOL_SIZE: POOL_SIZE, WORKER_SLOTS: SLOTS } = loadConfig({});

/** A database with a published echo agent without pauses, and a token that may call it. */
export interface Installation {
  databaseUrl: string;
  redisUrl: string;
  queueName: string;
  agentId: string;
  token: string;
}

export async function install(services: Services, defer: Defer): Promise<Installation> {
  const { redisUrl } = services;
  if (redisUrl === null) throw new Error('This benchmark needs Redis: set REDIS_URL');
  const databaseUrl = await services.newDatabase(defer);
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const access = new AccessStore(pool);
    const organizationId = await access.createOrganization('Bench');
    const manifest = { name: 'echo', harness: { name: 'echo', pauseMs: 0 } };
    const agentId = await createAgent(pool, { organizationId, manifest });
    await publishAgentVersion(pool, agentId, manifest);
    const { token } = await access.mintToken({ kind: 'service', organizationId, agentIds: [agentId], name: 'bench' });
    return { databaseUrl, redisUrl, queueName: services.newName(), agentId, token };
  } finally {
    await pool.end();
  }
}

const READY_WITHIN_MS = 30_000;

/** The built API, as it runs in production: defaults, and nothing set but addresses and a budget for its one token. */
export async function startApi(
  spool: Installation,
  defer: Defer,
  profiled: boolean,
): Promise<NodeProcess & { origin: string }> {
  const port = await findFreePort();
  const api = start('apps/api/main.js', defer, { ...settingsOf(spool), PORT: `${port}` }, profiled);
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

export function startWorker(spool: Installation, defer: Defer, profiled: boolean): NodeProcess {
  return start('apps/worker/main.js', defer, settingsOf(spool), profiled);
}

const settingsOf = ({ databaseUrl, redisUrl, queueName }: Installation): Record<string, string> => ({
  RATE_LIMIT_PER_MINUTE: '1000000000',
  DATABASE_URL: databaseUrl,
  QUEUE_URL: redisUrl,
  REDIS_URL: redisUrl,
  QUEUE_NAME: queueName,
});

/** A hand-written process; it begins when it is asked to, with its options. */
export function startFloor(part: 'api' | 'worker', defer: Defer): NodeProcess {
  return start(`bench/floor/${part}.js`, defer);
}

/** The process that makes the load, one order after the other. */
export function startLoad(defer: Defer): (order: LoadOrder) => Promise<Figures> {
  const load = start('bench/load/main.js', defer);
  return (order) => load.ask<Figures>(order);
}

function start(script: string, defer: Defer, env?: Record<string, string>, profiled?: boolean): NodeProcess {
  const started = startNode(script, env, profiled);
  defer(() => started.stop());
  return started;
}

/** One Thread with a Run, made as the load makes them. */
export async function createOneThread(
  origin: string,
  { agentId, token }: Installation,
  keyed: boolean,
): Promise<{ threadId: string; answer: string }> {
  const answered = await fetch(`${origin}${BASE_PATH}/agents/${agentId}/threads`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      ...(keyed ? { 'Idempotency-Key': 'a-key-to-be-recorded' } : {}),
    },
    body: CREATE_THREAD,
  });
  const answer = await answered.text();
  if (!answered.ok) throw new Error(`the API answered ${answered.status}: ${answer}`);
  const { thread } = JSON.parse(answer) as { thread: { id: string } };
  return { threadId: thread.id, answer };
}

/** Waits until the Thread's Run has ended. */
export async function untilIdle(origin: string, { token }: Installation, threadId: string): Promise<void> {
  const url = `${origin}${BASE_PATH}/threads/${threadId}/events/stream?until=idle`;
  const stream = await fetch(url, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(10_000),
  });
  const text = await stream.text();
  if (!text.includes('run.completed')) throw new Error(`the Run did not complete: ${text}`);
}
