import type { Run } from './client.ts';
import { DATE_TIME, decide, interrupt, refusal, ULID, UNKNOWN, userMessage, type World } from './world.ts';

/** Runs: their fields, lists, states, limits and retries (docs/spec/agent-threads-api.md#run-runsummary, docs/spec/decisions.md#threads-and-runs). */
export function describeRuns(world: World): void {
  describe('runs', () => {
    describe('Run (RunSummary)', () => {
      let completed: Run;
      let failed: Run;
      let waiting: Run;
      let cancelled: Run;
      beforeAll(async () => {
        completed = (await world.endedThread()).run;
        failed = (await world.endedThread({ text: '/fail' })).run;
        waiting = (await world.waitingThread()).run;
        const { thread } = await world.waitingThread();
        cancelled = (await world.send(thread.id, interrupt())).json.events[0]!.run;
      });

      test('id: ulid', () => {
        for (const { id } of [completed, failed, waiting, cancelled]) expect(id).toMatch(ULID);
      });
      test('status: one of eight', () => {
        const statuses = [completed, failed, waiting, cancelled].map(({ status }) => status);
        expect(statuses).toEqual(['completed', 'failed', 'waiting_input', 'cancelled']);
      });
      test('trigger: user_prompt for a message', () => {
        expect(completed.trigger).toBe('user_prompt');
      });
      test('createdAt, updatedAt: date-time', () => {
        for (const at of [completed.createdAt, completed.updatedAt]) expect(at).toMatch(DATE_TIME);
        expect(Date.parse(completed.updatedAt)).toBeGreaterThanOrEqual(Date.parse(completed.createdAt));
      });
      test('startedAt: null while queued, then the time of the first start', async () => {
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        const { thread, run: first, asked } = await world.waitingThread({ agentId });
        const queued = (await world.send(thread.id, userMessage('next'))).json.events[0]!.run;
        expect([queued.status, queued.startedAt]).toEqual(['queued', null]);
        const resumed = (await world.send(thread.id, decide(asked.content))).json.events[0]!.run;
        expect([resumed.status, resumed.startedAt]).toEqual(['queued', null]);
        await world.ended(thread.id);
        const { run } = (await world.client.get(`/threads/${thread.id}/runs/${first.id}`)).json;
        expect(run.startedAt).toBe(first.startedAt);
      });
      test('completedAt: null until terminal, set by every terminal event', () => {
        expect(waiting.completedAt).toBeNull();
        for (const { completedAt, createdAt } of [completed, failed, cancelled]) {
          expect(Date.parse(completedAt!)).toBeGreaterThanOrEqual(Date.parse(createdAt));
        }
      });
      test('error: present only when failed', () => {
        expect([completed, failed, waiting, cancelled].map(({ error }) => error !== null)).toEqual([
          false,
          true,
          false,
          false,
        ]);
      });
      test('finalOutput: of a completed Run', () => {
        const outputs = [completed, failed, waiting, cancelled].map(({ finalOutput }) => finalOutput);
        expect(outputs).toEqual([{ text: 'You said: hello', warnings: [] }, null, null, null]);
      });

      test('RunError: code, message and retryable', async () => {
        expect(failed.error).toMatchObject({ code: 'provider_rejected', retryable: false });
        const agentId = await world.newAgent({ limits: { providerRetryMs: 0 } });
        const { run } = await world.endedThread({ agentId, text: '/fail-retryable' });
        expect(run.error).toMatchObject({ code: 'provider_unavailable', retryable: true });
        for (const { message } of [failed.error!, run.error!])
          expect(message).not.toMatch(/\bat \/|node_modules|stack/);
      });

      test('RunFinalOutput: text, and warnings always an array', () => {
        expect(completed.finalOutput).toEqual({ text: 'You said: hello', warnings: [] });
      });
    });

    describe('GET /threads/{threadId}/runs and …/runs/{runId}', () => {
      let threadId: string;
      let ids: string[];
      beforeAll(async () => {
        ({ id: threadId } = await world.newThread());
        const batch = Array.from({ length: 50 }, () => [userMessage('a'), interrupt()]).flat();
        const sent = [await world.send(threadId, ...batch), await world.send(threadId, ...batch)];
        sent.push(await world.send(threadId, userMessage('last'), interrupt()));
        ids = sent.flatMap(({ json }) =>
          json.events.filter(({ type }) => type === 'user_message').map(({ run }) => run.id),
        );
      });
      const list = async (query = '') => {
        const { status, json } = await world.client.get(`/threads/${threadId}/runs${query}`);
        expect(status).toBe(200);
        return json;
      };

      test('newest first, limit 1..100, {runs, nextCursor}, null at the end', async () => {
        const first = await list();
        const rest = await list(`?cursor=${first.nextCursor}`);
        expect([first.runs.length, rest.runs.length, rest.nextCursor]).toEqual([100, 1, null]);
        expect(await list(`?limit=1&cursor=${first.nextCursor}`)).toEqual(rest);
        expect([...first.runs, ...rest.runs].map(({ id }) => id)).toEqual(ids.toReversed());
        expect((await list('?limit=3')).runs).toEqual(first.runs.slice(0, 3));
        for (const limit of ['0', '101', 'x']) {
          expect(refusal(await world.client.get(`/threads/${threadId}/runs?limit=${limit}`))).toEqual([
            400,
            'invalid_request',
          ]);
        }
      });

      test('…/runs/{runId}: 200 {run}, the same Run as in the list', async () => {
        const { runs } = await list('?limit=2');
        for (const run of runs) {
          const { status, json } = await world.client.get(`/threads/${threadId}/runs/${run.id}`);
          expect([status, json]).toEqual([200, { run }]);
        }
      });

      test('…/runs/{runId}: unknown, or of another Thread, is 404', async () => {
        const other = await world.newThread();
        for (const path of [`/threads/${threadId}/runs/${UNKNOWN}`, `/threads/${other.id}/runs/${ids[0]}`]) {
          expect(refusal(await world.client.get(path))).toEqual([404, 'not_found']);
        }
        expect(refusal(await world.client.get(`/threads/${threadId}/runs/x`))).toEqual([400, 'invalid_request']);
      });
    });

    describe('states', () => {
      test('queued → booting → running → completed; Thread RUNNING, then IDLE', async () => {
        const { id } = await world.newThread({ text: '/think 2s' });
        const { thread } = await world.becomes(id, ({ run }) => run.status === 'running', 'the Run is running');
        expect(thread.status).toBe('RUNNING');
        const ended = await world.ended(id);
        expect([ended.run.status, ended.thread.status]).toEqual(['completed', 'IDLE']);
      });

      test('running → waiting_input → queued → running → completed', async () => {
        const { thread, run, asked } = await world.waitingThread();
        expect([run.status, thread.status]).toEqual(['waiting_input', 'RUNNING']);
        const { json } = await world.send(thread.id, decide(asked.content));
        expect(json.events[0]!.run.status).toBe('queued');
        expect(json.thread.status).toBe('RUNNING');
        expect((await world.ended(thread.id)).run.status).toBe('completed');
      });

      test('running → queued after a failure that may pass: Thread RESCHEDULING, and the log marks the cut', async () => {
        const { id } = await world.newThread({ text: '/think 2s /flaky 1' });
        await world.becomes(id, ({ run }) => run.status === 'running', 'the Run is running');
        // While the queue is paused, no worker claims the Run again.
        await world.controls.pauseQueue();
        const isBack = ({ run }: { run: Run }) => run.status === 'queued';
        try {
          const { run, thread } = await world.becomes(id, isBack, 'the Run is queued again');
          expect([thread.status, run.status, run.startedAt]).toEqual(['RESCHEDULING', 'queued', null]);
        } finally {
          await world.controls.resumeQueue();
        }
        expect((await world.ended(id)).run.status).toBe('completed');
        const log = await world.log(id);
        const statuses = log.filter(({ type }) => type === 'session.status').map(({ content }) => content);
        expect(statuses).toEqual(['RUNNING', 'RESCHEDULING', 'RUNNING', 'IDLE']);
        expect(log.filter(({ type }) => type === 'run.started')).toHaveLength(1);
      });

      test('a provider that stays unavailable for providerRetryMs fails the Run', async () => {
        const agentId = await world.newAgent({ limits: { providerRetryMs: 1_000 } });
        const { run } = await world.endedThread({ agentId, text: '/flaky 5' });
        expect(run).toMatchObject({ status: 'failed', error: { code: 'provider_unavailable' } });
      });

      test('queued → cancelled, before any worker', async () => {
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        const { thread } = await world.waitingThread({ agentId });
        const { run } = (await world.send(thread.id, userMessage('next'))).json.events[0]!;
        const { json } = await world.send(thread.id, interrupt({ runId: run.id }));
        expect(json.events[0]!.run).toMatchObject({ id: run.id, status: 'cancelled', startedAt: null });
        expect(json.thread.status).toBe('RUNNING');
      });

      test('waiting_input → expired at the limit on waiting; work → expired at the limit on work', async () => {
        const patience = await world.newAgent({ limits: { waitMs: 1 } });
        const diligence = await world.newAgent({ limits: { workMs: 200 } });
        const [waited, worked] = await Promise.all([
          world.endedThread({ agentId: patience, text: '/confirm' }),
          world.endedThread({ agentId: diligence, text: '/think 60s' }),
        ]);
        for (const { run, thread } of [waited, worked]) {
          expect([run.status, run.error, run.finalOutput, thread.status]).toEqual(['expired', null, null, 'IDLE']);
        }
      });

      test('last_run_id and the run of GET Thread: the newest; current Run: the oldest that is not terminal', async () => {
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        const { thread, run } = await world.waitingThread({ agentId });
        const next = (await world.send(thread.id, userMessage('next'))).json.events[0]!.run;
        const { json } = await world.client.get(`/threads/${thread.id}`);
        expect([json.run.id, json.thread.last_run_id]).toEqual([next.id, next.id]);
        expect((await world.send(thread.id, interrupt())).json.events[0]!.run.id).toBe(run.id);
      });

      test('updated_at and updatedAt: text pieces do not move them', async () => {
        const { id } = await world.newThread({ text: '/pause 40 /pieces 1000' });
        const running = await world.becomes(id, ({ run }) => run.status === 'running', 'the Run is running');
        await world.entry(id, 'agent.message.delta');
        const { run, thread } = (await world.client.get(`/threads/${id}`)).json;
        expect(run.status).toBe('running');
        expect([run.updatedAt, thread.updated_at]).toEqual([running.run.updatedAt, running.thread.updated_at]);
        await world.send(id, interrupt());
        const ended = await world.ended(id);
        expect(Date.parse(ended.run.updatedAt)).toBeGreaterThan(Date.parse(run.updatedAt));
      });

      test.each([
        ['the first line of the first message', 'Order 7\nis late', 'Order 7'],
        ['white space collapsed', '  Order \t 7  ', 'Order 7'],
        ['80 characters stay', '😀'.repeat(80), '😀'.repeat(80)],
      ])('title: %s', async (_, text, title) => {
        expect((await world.newThread({ text })).title).toBe(title);
      });

      test('title: at most 80 characters, … where cut; kept by later messages', async () => {
        const { thread } = await world.endedThread({ text: 'word '.repeat(40) });
        expect(Array.from(thread.title!).length).toBeLessThanOrEqual(80);
        expect(thread.title).toMatch(/^word .*…$/);
        await world.send(thread.id, userMessage('later'));
        expect((await world.ended(thread.id)).thread.title).toBe(thread.title);
      });

      test('a Thread without input takes its title from its first message', async () => {
        const { id } = await world.newThread();
        expect((await world.send(id, userMessage('Later on'))).json.thread.title).toBe('Later on');
      });

      test('a lost worker: its Run is taken back and runs to its end', async () => {
        await world.startWorker();
        const { id } = await world.newThread({ text: '/crash me' });
        const { run } = await world.ended(id);
        expect(run.status).toBe('completed');
        const log = await world.log(id);
        expect(log.map(({ content }) => content)).toContain('RESCHEDULING');
      });
    });

    describe('POST /threads/{threadId}/runs/{runId}/retry', () => {
      const retry = (threadId: string, runId: string, headers = {}) =>
        world.client.post(`/threads/${threadId}/runs/${runId}/retry`, undefined, { headers });

      test('of a failed Run whose error is retryable: 201 {run}, trigger retry; its message is not repeated', async () => {
        const agentId = await world.newAgent({ limits: { providerRetryMs: 0 } });
        const { thread, run } = await world.endedThread({ agentId, text: '/flaky 1 hello' });
        expect(run.error?.retryable).toBe(true);
        const { status, json } = await retry(thread.id, run.id);
        expect([status, Object.keys(json)]).toEqual([201, ['run']]);
        expect(json.run).toMatchObject({ status: 'queued', trigger: 'retry' });
        expect(json.run.id).not.toBe(run.id);
        const { last_run_id } = (await world.client.get(`/threads/${thread.id}`)).json.thread;
        expect(last_run_id).toBe(json.run.id);
        expect((await world.client.get(`/threads/${thread.id}/runs/${run.id}`)).json.run).toEqual(run);
        await world.ended(thread.id);
        expect((await world.log(thread.id)).filter(({ type }) => type === 'user.message')).toHaveLength(1);
      });

      test('of a cancelled Run: trigger resume; it continues where the transcript stops', async () => {
        const { thread, run } = await world.waitingThread({ text: '/confirm hello' });
        await world.send(thread.id, interrupt());
        const { status, json } = await retry(thread.id, run.id);
        expect([status, json.run.trigger]).toEqual([201, 'resume']);
        expect(json.run.status).toBe('queued');
      });

      test('of an expired Run: trigger resume', async () => {
        const agentId = await world.newAgent({ limits: { waitMs: 1 } });
        const { thread, run } = await world.endedThread({ agentId, text: '/confirm' });
        const { status, json } = await retry(thread.id, run.id);
        expect([status, json.run.trigger]).toEqual([201, 'resume']);
      });

      test('a Run that cannot be retried is 409: completed, not retryable, active, not the newest', async () => {
        const completed = await world.endedThread();
        const rejected = await world.endedThread({ text: '/fail' });
        const active = await world.waitingThread();
        const { thread: older, run: first } = await world.waitingThread();
        await world.send(older.id, interrupt(), userMessage('next'));
        await world.ended(older.id);
        for (const [threadId, runId] of [
          [completed.thread.id, completed.run.id],
          [rejected.thread.id, rejected.run.id],
          [active.thread.id, active.run.id],
          [older.id, first.id],
        ] as const) {
          expect(refusal(await retry(threadId, runId))).toEqual([409, 'idempotency_conflict']);
        }
      });

      test('of no Run of this Thread: 404', async () => {
        const { thread } = await world.endedThread();
        const other = await world.endedThread();
        for (const runId of [UNKNOWN, other.run.id]) {
          expect(refusal(await retry(thread.id, runId))).toEqual([404, 'not_found']);
        }
      });

      test('takes Idempotency-Key: the same key gives the stored answer, and one Run', async () => {
        const { thread, run } = await world.waitingThread();
        await world.send(thread.id, interrupt());
        const headers = { 'idempotency-key': `retry-${run.id}` };
        const first = await retry(thread.id, run.id, headers);
        const again = await retry(thread.id, run.id, headers);
        expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
        expect(again.headers.get('idempotency-replayed')).toBe('true');
        expect((await world.client.get(`/threads/${thread.id}/runs`)).json.runs).toHaveLength(2);
      });

      test('two at once make one Run', async () => {
        const { thread, run } = await world.waitingThread();
        await world.send(thread.id, interrupt());
        const replies = await Promise.all([retry(thread.id, run.id), retry(thread.id, run.id)]);
        expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 409]);
      });
    });
  });
}
