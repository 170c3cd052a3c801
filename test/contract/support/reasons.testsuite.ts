import { decide, interrupt, message, reasonOf, refusal, userMessage, type World } from './world.ts';

/** The header Spool-Error-Reason of error answers, and the warnings of send-events. */
export function describeReasons(world: World): void {
  describe('Spool-Error-Reason tells causes that share a code', () => {
    const conflict = async (reply: ReturnType<World['send']>): Promise<string | null> => {
      expect(refusal(await reply)).toEqual([409, 'idempotency_conflict']);
      return reasonOf(await reply);
    };

    test('idempotency_conflict: thread_busy, key_reused, no_active_run, request_not_pending, run_not_retryable', async () => {
      const { thread, run } = await world.waitingThread();
      expect(await conflict(world.send(thread.id, userMessage('busy')))).toBe('thread_busy');
      expect(await conflict(world.send(thread.id, decide('unknown')))).toBe('request_not_pending');
      const retry = `/threads/${thread.id}/runs/${run.id}/retry`;
      expect(await conflict(world.client.post(retry))).toBe('run_not_retryable');
      await world.send(thread.id, interrupt());
      expect(await conflict(world.send(thread.id, interrupt()))).toBe('no_active_run');
      const headers = { 'idempotency-key': `reasons-${world.backend}` };
      const path = `/agents/${world.agentId}/threads`;
      await world.client.post(path, { userId: 'u', input: message('once') }, { headers });
      expect(await conflict(world.client.post(path, { userId: 'u' }, { headers }))).toBe('key_reused');
    });

    test('a success has none', async () => {
      expect(reasonOf(await world.create())).toBeNull();
    });
  });

  describe('warnings: a request that was honoured in part', () => {
    test('run_already_ended: an interrupt that names a Run which had ended, also by the same batch', async () => {
      const { thread, run } = await world.endedThread();
      const ended = { code: 'run_already_ended', message: `body.events.0: The Run ${run.id} had already ended.` };
      const { status, json } = await world.send(thread.id, interrupt({ runId: run.id }));
      expect([status, json.warnings]).toEqual([200, [ended]]);
      const { thread: other, run: waiting } = await world.waitingThread();
      const twice = await world.send(other.id, interrupt(), interrupt({ runId: waiting.id }));
      expect([twice.status, ...twice.json.events.map(({ run: { id, status } }) => [id, status])]).toEqual([
        200,
        [waiting.id, 'cancelled'],
        [waiting.id, 'cancelled'],
      ]);
      expect(twice.json.warnings).toMatchObject([{ code: 'run_already_ended' }]);
      expect((await world.log(other.id)).filter(({ type }) => type === 'run.failed')).toHaveLength(1);
    });

    test('message_queued: a message behind others (whenBusy: enqueue), and not into an idle Thread', async () => {
      const agentId = await world.newAgent({ whenBusy: 'enqueue' });
      const { thread } = await world.waitingThread({ agentId });
      const { json } = await world.send(thread.id, userMessage('second'), interrupt());
      expect(json.events.map(({ run: { status } }) => status)).toEqual(['queued', 'cancelled']);
      expect(json.warnings).toEqual([
        { code: 'message_queued', message: 'body.events.0: The message waits behind 1 Run of the Thread.' },
      ]);
      await world.ended(thread.id);
      expect((await world.send(thread.id, userMessage('third'))).json.warnings).toEqual([]);
    });

    test('a replay has the stored warnings, byte for byte', async () => {
      const { thread, run } = await world.endedThread();
      const headers = { 'idempotency-key': `warned-${world.backend}` };
      const body = { events: [interrupt({ runId: run.id })] };
      const [first, again] = [
        await world.client.post(`/threads/${thread.id}/events`, body, { headers }),
        await world.client.post(`/threads/${thread.id}/events`, body, { headers }),
      ];
      expect(first.json.warnings).toHaveLength(1);
      expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true']);
    });
  });
}
