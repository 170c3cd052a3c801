import { describeWithRedis, eventually, redisUrl, type SpawnedNode } from '#testing';
import { expectHealthy, expectWholeLog, lastMessage } from './support/checks.ts';
import {
  createThread,
  entriesOf,
  follow,
  getThread,
  postEvents,
  readLog,
  readStream,
  send,
  waitForEntry,
  type Caller,
  type ThreadAnswer,
} from './support/client.ts';
import { isLong, startSystem, upTo, type System } from './support/system.ts';

const CRASHES = isLong ? 10 : 1;

/** The way of one message over HTTP, through an api and a worker process, on both queue backends. */
const backends = [
  { backend: 'PostgreSQL', describeIt: describe, queueUrl: () => undefined },
  { backend: 'Redis', describeIt: describeWithRedis, queueUrl: () => redisUrl().url },
];

for (const { backend, describeIt, queueUrl } of backends) {
  describeIt(`one message, jobs on ${backend}`, () => {
    let system: System;
    let caller: Caller;
    let worker: SpawnedNode;

    beforeAll(async () => {
      const url = queueUrl();
      system = await startSystem({ env: { LEASE_MS: '1000' }, ...(url === undefined ? {} : { queueUrl: url }) });
      [{ caller }, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    }, 120_000);

    afterAll(async () => {
      await expectHealthy(system.database);
      await system.stop();
    });

    const finished = async (threadId: string): Promise<ThreadAnswer> => {
      const ended = ['completed', 'failed', 'cancelled', 'expired'];
      return eventually(
        async () => {
          const { body } = await getThread(caller, threadId);
          return body.run !== null && ended.includes(body.run.status) ? body : null;
        },
        { what: 'the newest Run has ended', timeoutMs: 20_000 },
      );
    };

    test('goes from a request to its final answer, and every reader sees the same log', async () => {
      const created = await createThread(caller, 'Hello, Spool');
      expect(created.status).toBe(201);
      const { thread, run, links } = created.body;
      expect(run).toMatchObject({ status: 'queued', finalOutput: null });
      expect(links.thread).toBe(`${caller.baseUrl}/threads/${thread.id}`);

      const frames = await readStream(caller, `/threads/${thread.id}/events/stream?until=idle`);
      expect(frames.at(-1)?.event).toBe('thread.idle');
      const log = await readLog(caller, thread.id);
      expect(entriesOf(frames)).toEqual(log);
      expectWholeLog(log, run!.id, 'You said: Hello, Spool');
      expect(log.map(({ type }) => type).filter((type) => !type.endsWith('.delta'))).toEqual([
        'user.message',
        'session.status',
        'run.started',
        'usage.updated',
        'run.completed',
        'session.status',
      ]);

      const { body } = await getThread(caller, thread.id);
      expect(body.thread).toMatchObject({ status: 'IDLE', title: 'Hello, Spool', last_run_id: run!.id });
      expect(body.run).toMatchObject({
        status: 'completed',
        error: null,
        finalOutput: { text: 'You said: Hello, Spool', warnings: [] },
      });
    });

    test('a stream resumed after any frame goes on strictly behind it', async () => {
      const { body } = await createThread(caller, '/pieces 5 again and again');
      await finished(body.thread.id);
      const path = `/threads/${body.thread.id}/events/stream?until=idle`;
      const events = (await readStream(caller, path)).filter(({ event }) => event === 'thread.event');
      for (const [i, { id }] of events.entries()) {
        const rest = await readStream(caller, path, { lastEventId: id ?? '' });
        expect(rest.filter(({ event }) => event === 'thread.event')).toEqual(events.slice(i + 1));
      }
    });

    test('a tool that needs permission waits for a person, and runs when allowed', async () => {
      const { body } = await createThread(caller, '/confirm');
      const asked = await waitForEntry(caller, body.thread.id, 'tool.confirmation.required');
      expect((await getThread(caller, body.thread.id)).body.run?.status).toBe('waiting_input');

      const decision = { type: 'permission_decision', requestId: asked.content, decision: 'allow_once' };
      const decided = await postEvents(caller, body.thread.id, decision);
      expect(decided.status).toBe(200);
      expect(await postEvents(caller, body.thread.id, decision)).toMatchObject({ status: 409 });

      expect((await finished(body.thread.id)).run?.status).toBe('completed');
      const lifecycle = (await readLog(caller, body.thread.id)).filter(
        ({ toolCallId }) => toolCallId === asked.toolCallId,
      );
      expect(lifecycle.map(({ type }) => type)).toEqual([
        'tool.confirmation.required',
        'tool.use.started',
        'tool.use.completed',
      ]);
    });

    test('a refused tool never starts', async () => {
      const { body } = await createThread(caller, '/confirm');
      const asked = await waitForEntry(caller, body.thread.id, 'tool.confirmation.required');
      await postEvents(caller, body.thread.id, {
        type: 'permission_decision',
        requestId: asked.content,
        decision: 'reject_once',
      });
      await finished(body.thread.id);
      const log = await readLog(caller, body.thread.id);
      expect(log.some(({ type }) => type === 'tool.use.started')).toBe(false);
      expect(log.find(({ type }) => type === 'tool.use.completed')).toMatchObject({ status: 'error' });
    });

    test('an interrupt is a stop: the answer already shows it, and nothing of the Run comes after', async () => {
      const { body } = await createThread(caller, '/think 60s');
      await waitForEntry(caller, body.thread.id, 'agent.thinking.delta');
      const interrupted = await postEvents(caller, body.thread.id, { type: 'user_interrupt' });
      expect(interrupted.body).toMatchObject({
        events: [{ run: { status: 'cancelled' } }],
        thread: { status: 'IDLE' },
      });
      const next = await postEvents(caller, body.thread.id, { type: 'user_message', text: 'and now?' });
      expect(next.status).toBe(200);
      expect((await finished(body.thread.id)).run?.finalOutput?.text).toBe('You said: and now?');
      const log = await readLog(caller, body.thread.id);
      const end = log.findIndex(({ type }) => type === 'run.failed');
      expect(log[end]).toMatchObject({ content: 'cancelled', status: 'error' });
      expect(log.slice(end + 1).some(({ runId, type }) => runId === body.run?.id && type !== 'session.status')).toBe(
        false,
      );
    });

    test('a failure is told by its code', async () => {
      const { body } = await createThread(caller, '/fail');
      expect((await finished(body.thread.id)).run).toMatchObject({ status: 'failed', finalOutput: null });
    });

    test(
      'a crash of the worker’s process is survived: another one runs the Run to its end',
      async () => {
        for (let crash = 0; crash < CRASHES; crash++) {
          const { body } = await createThread(caller, '/crash me');
          const seen = follow([caller], body.thread.id);
          expect(await worker.exited).toMatchObject({ signal: 'SIGKILL' });
          worker = await system.startWorker();
          const ended = await finished(body.thread.id);
          expect(ended.run?.status).toBe('completed');
          const log = await seen;
          expect(log).toEqual(await readLog(caller, body.thread.id));
          expect(log.map(({ content }) => content)).toContain('RESCHEDULING');
          expect(lastMessage(log)).toBe(ended.run?.finalOutput?.text);
        }
      },
      upTo(120_000),
    );

    test('an idempotency key has one effect and one answer', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => createThread(caller, 'once', `key-${backend}`)),
      );
      const done = answers.filter(({ status }) => status === 201);
      expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
      expect(new Set(done.map(({ body }) => body.thread.id)).size).toBe(1);
      const again = await createThread(caller, 'once', `key-${backend}`);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      expect(again.body).toEqual(done[0]?.body);
      expect(await createThread(caller, 'twice', `key-${backend}`)).toMatchObject({ status: 409 });
    });

    test('health and the OpenAPI document need no token', async () => {
      const origin = new URL(caller.baseUrl).origin;
      expect((await fetch(`${origin}/health/live`)).status).toBe(200);
      expect((await fetch(`${origin}/health/ready`)).status).toBe(200);
      const openapi = await send({ ...caller, token: '' }, 'GET', '/openapi.json');
      expect(openapi.body).toMatchObject({ openapi: expect.stringMatching(/^3\.1/) as string });
    });
  });
}
