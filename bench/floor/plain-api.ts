import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { BASE_PATH } from '../load/order.ts';
import { answerParent } from '../processes.ts';
import { fillable } from '../recorded-run.ts';
import { factsOfCreation } from './plain-facts.ts';
import { newPlainId, openPlainPool, PlainStore } from './plain-store.ts';

/** The options of the independent floor's API. */
export interface PlainApiOptions {
  databaseUrl: string;
  poolSize: number;
  /** Spool's response body to a creation, and the ids of its Thread and Run. */
  answer: string;
  ids: string[];
}

/** The shape of `CREATE_THREAD`. */
interface CreateBody {
  userId: string;
  input: { type: string; content: { type: string; text: string }[] };
}

answerParent(async ({ databaseUrl, poolSize, answer, ids }: PlainApiOptions): Promise<string> => {
  const store = new PlainStore(openPlainPool(databaseUrl, poolSize));
  const render = fillable(answer, ids);
  const app = Fastify();
  app.post<{ Body: CreateBody }>(`${BASE_PATH}/agents/:agentId/threads`, async ({ headers, body }, reply) => {
    const [threadId, runId] = [newPlainId(), newPlainId()];
    const text = body.input.content.map((part) => part.text).join('');
    const rendered = render([threadId, runId]) as string;
    const key = headers['idempotency-key'];
    const keyed = key === undefined ? undefined : { key: String(key), body: rendered };
    await store.create(threadId, runId, factsOfCreation(text), keyed);
    return reply.code(201).type('application/json; charset=utf-8').send(rendered);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});
