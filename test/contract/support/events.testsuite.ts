import { DATE_TIME, decide, interrupt, refusal, ULID, UNKNOWN, userMessage, type World } from './world.ts';

/**
 * Sending events: the variants, what each does, and what a state refuses (docs/spec/agent-threads-api.md#endpoints,
 * docs/spec/decisions.md#state-conflicts, docs/spec/decisions.md#when-busy, docs/spec/decisions.md#interrupts).
 */
export function describeEvents(world: World): void {
  describe('POST /threads/{threadId}/events', () => {
    const decisionOf = async (wanted = {}) => {
      const { thread, run, asked } = await world.waitingThread(wanted);
      return { threadId: thread.id, run, requestId: asked.content };
    };

    describe('the body', () => {
      let threadId: string;
      beforeAll(async () => {
        threadId = (await world.newThread()).id;
      });

      test.each([
        ['events: required', {}],
        ['events: an array', { events: interrupt() }],
        ['events: min 1 item', { events: [] }],
        ['events: at most 100', { events: Array.from({ length: 101 }, () => interrupt()) }],
        ['no additional properties', { events: [interrupt()], dryRun: true }],
        ['type: required', { events: [{ text: 'a' }] }],
        ['type: one of three', { events: [{ type: 'user.message', text: 'a' }] }],
        ['user_message: text required', { events: [{ type: 'user_message' }] }],
        ['user_message: text a string', { events: [userMessage(7 as never)] }],
        ['user_message: text min length 1', { events: [userMessage('')] }],
        ['user_message: requestId string or null', { events: [userMessage('a', { requestId: 7 })] }],
        ['user_message: resources an array', { events: [userMessage('a', { resources: {} })] }],
        ['user_message: no additional properties', { events: [userMessage('a', { decision: 'allow_once' })] }],
        [
          'user_message: clientRequestId is unknown (an older name)',
          { events: [userMessage('a', { clientRequestId: 'x' })] },
        ],
        [
          'permission_decision: requestId required',
          { events: [{ type: 'permission_decision', decision: 'allow_once' }] },
        ],
        ['permission_decision: requestId not null', { events: [decide(null as never)] }],
        ['permission_decision: requestId min length 1', { events: [decide('')] }],
        ['permission_decision: decision required', { events: [{ type: 'permission_decision', requestId: 'r' }] }],
        ['permission_decision: decision allow_once or reject_once', { events: [decide('r', 'allow')] }],
        ['permission_decision: no additional properties', { events: [{ ...decide('r'), text: 'a' }] }],
        ['user_interrupt: runId a ulid', { events: [interrupt({ runId: 'r' })] }],
        ['user_interrupt: no additional properties', { events: [interrupt({ text: 'a' })] }],
      ])('%s, else 400 invalid_request', async (_, body) => {
        const reply = await world.client.post(`/threads/${threadId}/events`, body);
        expect(refusal(reply)).toEqual([400, 'invalid_request']);
        expect(await world.log(threadId)).toEqual([]);
      });
    });

    describe('the answer', () => {
      test('acceptedAt, events in the order sent, thread, warnings empty', async () => {
        const { threadId, requestId, run } = await decisionOf();
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        expect(agentId).toMatch(ULID);
        const { status, json } = await world.send(
          threadId,
          decide(requestId),
          interrupt(),
          userMessage('b', { requestId: 'mine' }),
        );
        expect(status).toBe(200);
        expect(json.acceptedAt).toMatch(DATE_TIME);
        expect(json.warnings).toEqual([]);
        expect(json.events.map(({ type }) => type)).toEqual(['permission_decision', 'user_interrupt', 'user_message']);
        expect(json.events[1]!.run).toMatchObject({ id: run.id, status: 'cancelled' });
        expect(json.events[2]!.run).toMatchObject({ status: 'queued', trigger: 'user_prompt' });
        expect(json.thread).toMatchObject({ id: threadId, status: 'RUNNING', last_run_id: json.events[2]!.run.id });
      });

      test('requestId: the echoed value, null when none was given or the type carries none', async () => {
        const thread = await world.newThread();
        const sent = await world.send(
          thread.id,
          userMessage('a', { requestId: 'ключ 😀' }),
          interrupt(),
          userMessage('b'),
          interrupt({ runId: null }),
          userMessage('c', { requestId: null }),
        );
        expect(sent.json.events.map(({ requestId }) => requestId)).toEqual(['ключ 😀', null, null, null, null]);
        const { threadId, requestId } = await decisionOf();
        expect((await world.send(threadId, decide(requestId))).json.events[0]!.requestId).toBe(requestId);
      });

      test('run: the Run created or affected', async () => {
        const thread = await world.newThread();
        const { json } = await world.send(thread.id, userMessage('a'), interrupt());
        const [created, affected] = json.events.map(({ run }) => run);
        expect(created).toMatchObject({ id: affected!.id });
        expect((await world.client.get(`/threads/${thread.id}/runs/${affected!.id}`)).json.run).toEqual(affected);
      });
    });

    describe('user_message', () => {
      test('an idle Thread gets a new Run, queued, which the event result carries', async () => {
        const { thread } = await world.endedThread();
        const { json } = await world.send(thread.id, userMessage('again'));
        expect(json.events).toMatchObject([{ type: 'user_message', run: { status: 'queued', startedAt: null } }]);
        const { run } = await world.ended(thread.id);
        expect([run.id, run.finalOutput?.text]).toEqual([json.events[0]!.run.id, 'You said: again']);
      });

      test('whenBusy reject, the default: a message while a Run is active is 409', async () => {
        const { thread, run } = await world.waitingThread();
        const refused = await world.send(thread.id, userMessage('hi'));
        expect(refusal(refused)).toEqual([409, 'idempotency_conflict']);
        expect((await world.client.get(`/threads/${thread.id}`)).json.run).toEqual(run);
      });

      test('whenBusy enqueue: its Run waits until the one before has ended, first in first out', async () => {
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        const { threadId, run, requestId } = await decisionOf({ agentId });
        const sent = await world.send(threadId, userMessage('second'), userMessage('third'));
        const [second, third] = sent.json.events.map((event) => event.run);
        expect([second!.status, third!.status]).toEqual(['queued', 'queued']);
        expect((await world.client.get(`/threads/${threadId}`)).json.run.id).toBe(third!.id);
        await world.send(threadId, decide(requestId));
        await world.ended(threadId);
        const order = (await world.log(threadId)).filter(
          ({ type }) => type === 'run.started' || type === 'run.completed',
        );
        expect(order.map(({ runId }) => runId)).toEqual([run.id, run.id, second!.id, second!.id, third!.id, third!.id]);
      });

      test('whenBusy enqueue: an interrupt ends only the current one, the oldest that is not terminal', async () => {
        const agentId = await world.newAgent({ whenBusy: 'enqueue' });
        const { threadId, run } = await decisionOf({ agentId });
        const second = (await world.send(threadId, userMessage('second'))).json.events[0]!.run;
        const { json } = await world.send(threadId, interrupt());
        expect(json.events[0]!.run).toMatchObject({ id: run.id, status: 'cancelled' });
        expect((await world.ended(threadId)).run).toMatchObject({ id: second.id, status: 'completed' });
      });

      test('whenBusy interrupt: the active Run is cancelled and the new one queued in one commit', async () => {
        const agentId = await world.newAgent({ whenBusy: 'interrupt' });
        const { id } = await world.newThread({ agentId, text: '/think 60s' });
        await world.entry(id, 'agent.thinking.delta');
        const { json } = await world.send(id, userMessage('instead'));
        expect(json.events[0]!.run.status).toBe('queued');
        const { runs } = (await world.client.get(`/threads/${id}/runs`)).json;
        expect(runs.map(({ status }) => status).at(-1)).toBe('cancelled');
        expect((await world.ended(id)).run.finalOutput?.text).toBe('You said: instead');
      });
    });

    describe('permission_decision', () => {
      test('requestId comes from the matching tool.confirmation.required; allow_once permits the action', async () => {
        const { threadId, run, requestId } = await decisionOf();
        expect(run.status).toBe('waiting_input');
        expect((await world.send(threadId, decide(requestId))).json.events[0]!.run.id).toBe(run.id);
        expect((await world.ended(threadId)).run.status).toBe('completed');
        const types = (await world.log(threadId)).map(({ type }) => type).filter((type) => type.startsWith('tool.'));
        expect(types).toEqual(['tool.confirmation.required', 'tool.use.started', 'tool.use.completed']);
      });

      test('reject_once denies it; then it has no start, and ends with status error', async () => {
        const { threadId, requestId } = await decisionOf();
        await world.send(threadId, decide(requestId, 'reject_once'));
        await world.ended(threadId);
        const tools = (await world.log(threadId)).filter(({ type }) => type.startsWith('tool.'));
        expect(tools.map(({ type, status }) => [type, status])).toEqual([
          ['tool.confirmation.required', 'available'],
          ['tool.use.completed', 'error'],
        ]);
      });

      test('allow_once is for this one occurrence', async () => {
        const { threadId, requestId } = await decisionOf();
        await world.send(threadId, decide(requestId));
        await world.ended(threadId);
        await world.send(threadId, userMessage('/confirm again'));
        await world.becomes(threadId, ({ run }) => run.status === 'waiting_input', 'it is asked again');
      });

      test('the Run is resumed by the decision of the last open request, and until then waits', async () => {
        const { threadId } = await decisionOf({ text: '/confirm 3' });
        const requests = (await world.log(threadId)).filter(({ type }) => type === 'tool.confirmation.required');
        expect(requests).toHaveLength(3);
        const [first, second, third] = requests.map(({ content }) => content);
        for (const id of [first!, third!]) {
          expect((await world.send(threadId, decide(id))).json.events[0]!.run.status).toBe('waiting_input');
        }
        expect((await world.send(threadId, decide(second!))).json.events[0]!.run.status).toBe('queued');
        expect((await world.ended(threadId)).run.status).toBe('completed');
      });

      test('unknown, already decided, or no longer pending is 409 idempotency_conflict', async () => {
        const { threadId, requestId } = await decisionOf({ text: '/confirm 2' });
        expect(refusal(await world.send(threadId, decide('unknown')))).toEqual([409, 'idempotency_conflict']);
        await world.send(threadId, decide(requestId));
        for (const decision of ['allow_once', 'reject_once']) {
          expect(refusal(await world.send(threadId, decide(requestId, decision)))).toEqual([
            409,
            'idempotency_conflict',
          ]);
        }
        const [, other] = (await world.log(threadId)).filter(({ type }) => type === 'tool.confirmation.required');
        await world.send(threadId, interrupt());
        expect(refusal(await world.send(threadId, decide(other!.content)))).toEqual([409, 'idempotency_conflict']);
      });

      test('a request of another Thread is unknown here', async () => {
        const [here, there] = [await decisionOf(), await decisionOf()];
        expect(refusal(await world.send(here.threadId, decide(there.requestId)))).toEqual([
          409,
          'idempotency_conflict',
        ]);
      });
    });

    describe('user_interrupt', () => {
      test.each([
        ['omitted', () => interrupt()],
        ['null', () => interrupt({ runId: null })],
        ['naming it', (runId: string) => interrupt({ runId })],
        ['naming it in lower case', (runId: string) => interrupt({ runId: runId.toLowerCase() })],
      ])('runId %s targets the Thread’s current Run, and the answer already shows cancelled', async (_, event) => {
        const { thread, run } = await world.waitingThread();
        const { status, json } = await world.send(thread.id, event(run.id));
        expect(status).toBe(200);
        expect(json.events[0]!.run).toMatchObject({ id: run.id, status: 'cancelled', error: null, finalOutput: null });
        expect(json.thread.status).toBe('IDLE');
      });

      test('cancelled is stored at once whatever the worker does, and nothing of the Run comes after', async () => {
        const { id } = await world.newThread({ text: '/pause 20 /pieces 3000' });
        await world.entry(id, 'agent.message.delta');
        const { json } = await world.send(id, interrupt());
        expect(json.events[0]!.run.status).toBe('cancelled');
        await world.send(id, userMessage('next'));
        await world.ended(id);
        const log = await world.log(id);
        const end = log.findIndex(({ type }) => type === 'run.failed');
        const later = log
          .slice(end + 1)
          .filter(({ runId, type }) => runId === log[end]!.runId && type !== 'session.status');
        expect(later).toEqual([]);
      });

      test('with no active Run is 409 idempotency_conflict', async () => {
        const { thread } = await world.endedThread();
        expect(refusal(await world.send(thread.id, interrupt()))).toEqual([409, 'idempotency_conflict']);
        const empty = await world.newThread();
        expect(refusal(await world.send(empty.id, interrupt()))).toEqual([409, 'idempotency_conflict']);
      });

      test('naming a terminal Run of this Thread is 200, that Run unchanged', async () => {
        const { thread, run } = await world.endedThread();
        const before = await world.log(thread.id);
        const { status, json } = await world.send(thread.id, interrupt({ runId: run.id }));
        expect([status, json.events]).toEqual([200, [{ type: 'user_interrupt', requestId: null, run }]]);
        expect(await world.log(thread.id)).toEqual(before);
      });

      test('a runId of no Run of this Thread is 404', async () => {
        const { thread } = await world.waitingThread();
        const other = await world.waitingThread();
        for (const runId of [UNKNOWN, other.run.id]) {
          expect(refusal(await world.send(thread.id, interrupt({ runId })))).toEqual([404, 'not_found']);
        }
        expect((await world.client.get(`/threads/${other.thread.id}`)).json.run).toEqual(other.run);
      });
    });

    describe('a batch is applied whole or not at all', () => {
      test('one refused event, and none of the others has happened', async () => {
        const { thread, run, asked } = await world.waitingThread();
        const before = await world.log(thread.id);
        const batches = [
          [decide(asked.content), userMessage('busy')],
          [interrupt(), userMessage('a'), userMessage('busy')],
          [interrupt(), interrupt({ runId: UNKNOWN })],
          [decide(asked.content), decide(asked.content)],
          [interrupt(), decide(asked.content)],
        ];
        for (const batch of batches) expect((await world.send(thread.id, ...batch)).status).toBeGreaterThanOrEqual(404);
        expect(await world.log(thread.id)).toEqual(before);
        expect((await world.client.get(`/threads/${thread.id}`)).json.run).toEqual(run);
      });

      test('an ordered batch: each event sees what those before it did', async () => {
        const { thread, run } = await world.waitingThread();
        const { status, json } = await world.send(
          thread.id,
          interrupt(),
          userMessage('new'),
          interrupt(),
          userMessage('last'),
        );
        expect(status).toBe(200);
        expect(json.events[0]!.run.id).toBe(run.id);
        expect(json.events[2]!.run).toMatchObject({ id: json.events[1]!.run.id, status: 'cancelled' });
        expect((await world.ended(thread.id)).run.finalOutput?.text).toBe('You said: last');
      });
    });
  });
}
