import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { loadConfig } from '#platform';
import { describeWithPrivateRedis, eventually, startPrivateRedis, type PrivateRedis, type SpawnedNode } from '#testing';
import { createAcknowledged, getThread, type Caller } from '../support/client.ts';
import { MetricsReader, total } from '../support/metrics-reader.ts';
import { SpoolCommand } from '../support/spool-command.ts';
import { startSystem, type System } from '../support/system.ts';

interface Status {
  pausedAt: string | null;
  pausedBy: string[];
}

/** Opens the queue like docs/operators.md describes for BullMQ tools, with the name of this installation. */
async function openAsDocumented(queueName: string, redisUrl: string): Promise<Queue> {
  const docs = await readFile(join(import.meta.dirname, '../../docs/operators.md').replace('/dist/', '/'), 'utf8');
  const [, name = '', prefix = ''] = /new Queue\('([^']+)', \{ connection, prefix: '([^']+)' \}\)/.exec(docs) ?? [];
  expect(name).toBe(loadConfig({}).QUEUE_NAME);
  return new Queue(queueName, { connection: { url: redisUrl }, prefix: prefix.replace(name, queueName) });
}

describeWithPrivateRedis('a BullMQ tool that pauses the queue', () => {
  const reader = new MetricsReader();
  let redis: PrivateRedis;
  let system: System;
  let tool: Queue;
  let api: { process: SpawnedNode; caller: Caller };
  let spool: SpoolCommand;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    system = await startSystem({ queueUrl: redis.url, env: { METRICS_PORT: '0' } });
    [api] = await Promise.all([system.startApi(), system.startWorker()]);
    spool = new SpoolCommand({ SPOOL_URL: new URL(api.caller.baseUrl).origin, SPOOL_TOKEN: system.operatorToken });
    tool = await openAsDocumented(system.env['QUEUE_NAME']!, redis.url);
  }, 120_000);

  afterAll(async () => {
    await tool?.close();
    await system?.stop();
    await redis?.stop();
  });

  const statusOf = async (threadId: string): Promise<string | undefined> =>
    (await getThread(api.caller, threadId)).body.run?.status;
  const completes = (threadId: string): Promise<unknown> =>
    eventually(async () => (await statusOf(threadId)) === 'completed', { what: 'the Run ends', timeoutMs: 30_000 });
  const metricIs = (wanted: number): Promise<unknown> =>
    eventually(async () => total(await reader.read(api.process), 'spool_queue_paused') === wanted, {
      what: `spool_queue_paused is ${wanted}`,
      timeoutMs: 30_000,
    });
  const health = async (): Promise<[number, { status: string; reasons: string[] }]> => {
    const answer = await fetch(`${new URL(api.caller.baseUrl).origin}/health/ready`);
    return [answer.status, (await answer.json()) as { status: string; reasons: string[] }];
  };

  test('is shown by status, overview, doctor, health and metrics; `queue resume` ends it', async () => {
    const first = await createAcknowledged(api.caller, 'before');
    await completes(first.threadId);

    await tool.pause();
    await metricIs(1);
    const { threadId } = await createAcknowledged(api.caller, 'meanwhile');
    expect(await spool.json<Status>('queue', 'status')).toMatchObject({ pausedBy: ['bullmq'] });
    expect((await spool.run(['queue', 'status'])).out).toMatch(/^paused by +a BullMQ tool$/m);
    const { out: overview } = await spool.run(['overview']);
    expect(overview).toContain('A BullMQ tool (a script, Bull Board) has paused the queue; no Run starts.');
    expect((await spool.run(['doctor'])).out).toContain('A BullMQ tool has paused the queue; no Run starts.');
    const [status, ready] = await health();
    expect([status, ready.status]).toEqual([200, 'degraded']);
    expect(ready.reasons).toEqual([expect.stringMatching(/^A BullMQ tool has paused the queue .*spool queue resume$/)]);
    expect(await statusOf(threadId)).toBe('queued');

    expect(await spool.json<Status>('queue', 'resume')).toMatchObject({ pausedAt: null, pausedBy: [] });
    await completes(threadId);
    expect(await tool.isPaused()).toBe(false);
    await metricIs(0);
    expect(await health()).toMatchObject([200, { status: 'ready' }]);
  }, 120_000);
});
