import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import { median } from './measure.ts';
import { SIZES } from './sizes.ts';
import { createOneThread, install, sideOf, startApi, startLoad, startWorker, type Installation } from './spool.ts';

/** Clients of the other Agent. */
const CLIENTS = 4;
/** How often the other Agent is measured without and with the outage. */
const ROUNDS = 5;
const RECOVERED_WITHIN_MS = 5 * 60_000;

/**
 * A model provider returns 503 for minutes, while Runs call it and another Agent works. Counts the calls of the provider, and the
 * Runs that fail or answer twice. Compares the rate of the other Agent with its rate before the outage.
 */
export function outage({ services, profiled }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const { outageMs, outageRuns } = SIZES;
    const spool = await install(services, defer);
    const provider = await startProvider(defer);
    const pool = new pg.Pool({ connectionString: services.ownerUrlOf(spool.databaseUrl), max: 1 });
    defer(() => pool.end());
    const failing = await addFailingAgent(pool, spool, provider.url);
    const { origin } = await startApi(spool, defer, profiled);
    startWorker(spool, defer, profiled, { ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1' });
    const { agentId, tokens } = spool;
    const order = { flow: 'round-trip', origin, agentId, tokens, keyed: false, connections: CLIENTS } as const;
    const other = sideOf(startLoad(defer), order);
    const measure = async (forMs: number): Promise<number[]> => {
      const rates: number[] = [];
      for (let round = 0; round < ROUNDS; round++) rates.push((await other(forMs / ROUNDS)).perSecond);
      return rates;
    };
    await other(outageMs / 60);
    const before = await measure(outageMs / 12);
    const [rates] = await Promise.all([measure(outageMs), createRuns(origin, failing, outageRuns, outageMs)]);
    const calls = provider.calls();
    provider.recover();
    const recoveredAt = performance.now();
    await untilEnded(pool, failing.agentId);
    const recoveryMs = performance.now() - recoveredAt;
    const { rows } = await pool.query<{ runs: number; completed: number; failed: number; answers: number }>(COUNT, [
      failing.agentId,
    ]);
    const { runs, completed, failed, answers } = rows[0]!;
    const lines = [
      `| Runs during the outage of ${outageMs / 1_000} s | ${runs} |`,
      `| completed after it, within ${(recoveryMs / 1_000).toFixed(1)} s | ${completed} |`,
      `| failed | ${failed} |`,
      `| answers of these Runs | ${answers} |`,
      `| calls of the provider during the outage | ${calls} |`,
      `| Runs/s of another Agent during the outage, beside before | ${(median(rates) / median(before)).toFixed(2)} |`,
    ];
    process.stdout.write(`\n| outage | |\n|---|---|\n${lines.join('\n')}\n`);
    if (completed !== runs || answers !== runs) throw new Error('A Run failed, or answered more than once.');
  });
}

const COUNT = `select count(*)::integer as runs,
       count(*) filter (where r.status = 'completed')::integer as completed,
       count(*) filter (where r.status = 'failed')::integer as failed,
       (select count(*)::integer from events e join thread_summaries t using (thread_id)
        where t.agent_id = $1 and e.type = 'assistant.message_added') as answers
from run_summaries r join thread_summaries t using (thread_id) where t.agent_id = $1`;

async function untilEnded(pool: pg.Pool, agentId: string): Promise<void> {
  const giveUpAt = performance.now() + RECOVERED_WITHIN_MS;
  for (;;) {
    const { rows } = await pool.query<{ live: number }>(
      'select count(*)::integer as live from run_work where agent_id = $1',
      [agentId],
    );
    if (rows[0]!.live === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`${rows[0]!.live} Runs have not ended.`);
    await sleep(100);
  }
}

/** Creates Threads with a message, evenly over the time. */
async function createRuns(origin: string, spool: Installation, count: number, forMs: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await createOneThread(origin, spool, false);
    await sleep(forMs / count);
  }
}

async function addFailingAgent(pool: pg.Pool, spool: Installation, baseUrl: string): Promise<Installation> {
  const { rows } = await pool.query<{ id: string }>('select organization_id as id from agents where id = $1', [
    spool.agentId,
  ]);
  const organizationId = rows[0]!.id;
  const manifest: AgentManifestInput = {
    name: 'failing',
    harness: { name: 'model' },
    model: { provider: 'openai-compatible', name: 'any', baseUrl },
  };
  const agentId = await createAgent(pool, { organizationId, manifest });
  await publishAgentVersion(pool, agentId, manifest);
  const token = { kind: 'service', organizationId, agentIds: [agentId], name: 'outage' } as const;
  return { ...spool, agentId, tokens: [(await new AccessStore(pool).mintToken(token)).token] };
}

/** A provider on loopback that returns 503 until it recovers. */
async function startProvider(defer: Defer): Promise<{ url: string; calls: () => number; recover: () => void }> {
  let isDown = true;
  let calls = 0;
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      calls += 1;
      if (isDown) response.writeHead(503).end('The server is overloaded.');
      else answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, calls: () => calls, recover: () => void (isDown = false) };
}

function answer(response: ServerResponse): void {
  const chunk = (delta: object, finish_reason: string | null): string =>
    `data: ${JSON.stringify({ id: 'a', created: 0, model: 'any', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunk({ role: 'assistant', content: 'Done.' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`);
}
