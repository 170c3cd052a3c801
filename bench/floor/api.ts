import Fastify from 'fastify';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { monotonicFactory } from 'ulid';
import pg from 'pg';
import type { AddressInfo } from 'node:net';
import { BASE_PATH } from '../load/order.ts';
import { answerParent } from '../processes.ts';
import { fillable, template, type RecordedRun } from '../recorded-run.ts';
import { followThreads } from './follow-threads.ts';
import type { FloorJob, FloorQueue } from './queue.ts';

/** What the hand-written API is started with. */
export interface FloorApiOptions {
  databaseUrl: string;
  poolSize: number;
  run: RecordedRun;
  /** What Spool answered to the creation of that Run. */
  answer: string;
  /** Null: Runs are accepted and no more. */
  queue: FloorQueue | null;
}

answerParent(async ({ databaseUrl, poolSize, run, answer, queue }: FloorApiOptions): Promise<string> => {
  const [first] = run.statements;
  if (first === undefined) throw new Error('nothing was recorded');
  const fill = template(first, run.ids);
  const render = fillable(answer, run.ids);
  const pool = new pg.Pool({ connectionString: databaseUrl, max: poolSize, options: '-c timezone=UTC' });
  const newId = monotonicFactory();
  const enqueue = queue === null ? () => undefined : enqueueTo(queue);
  const app = Fastify();

  app.post(`${BASE_PATH}/agents/:agentId/threads`, async (request, reply) => {
    const job = { threadId: newId(), runId: newId() };
    const ids = [job.threadId, job.runId, String(request.headers['idempotency-key'])];
    const { rows } = await pool.query<{ appended: boolean }>(fill(ids));
    if (rows[0]?.appended !== true) throw new Error('the floor did not append');
    enqueue(job);
    return reply.code(201).type('application/json; charset=utf-8').send(render(ids));
  });

  if (queue !== null) {
    const follow = await followThreads(pool, queue);
    app.get<{ Params: { threadId: string } }>(`${BASE_PATH}/threads/:threadId/events/stream`, (request, reply) => {
      reply.hijack();
      follow(request.params.threadId, reply.raw);
    });
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});

/** Not awaited by the request. */
function enqueueTo({ redisUrl, name }: FloorQueue): (job: FloorJob) => void {
  const queue = new Queue<FloorJob>(name, { connection: new Redis(redisUrl, { maxRetriesPerRequest: null }) });
  const options = { attempts: 1, removeOnComplete: true, removeOnFail: true };
  return (job) => void queue.add('run', job, { ...options, jobId: `${job.runId}-1` });
}
