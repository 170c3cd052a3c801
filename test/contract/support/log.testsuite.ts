import type { Entry } from './client.ts';
import { DATE_TIME, decide, interrupt, refusal, ULID, UNKNOWN, userMessage, type World } from './world.ts';

const PAIRS = 50;

/** A Thread with more entries than a page holds: four for each message that is interrupted at once. */
export async function longThread(world: World, batches: number): Promise<string> {
  const { id } = await world.newThread();
  const batch = Array.from({ length: PAIRS }, (_, i) => [userMessage(`${i}`), interrupt()]).flat();
  for (let i = 0; i < batches; i++) {
    const { status, text } = await world.send(id, ...batch);
    if (status !== 200) throw new Error(text);
  }
  return id;
}

/**
 * Reading the public log: its windows, its entries, and what each type says (docs/spec/agent-threads-api.md#log-entry,
 * docs/spec/agent-threads-api.md#events, docs/spec/decisions.md#log).
 */
export function describeLog(world: World): void {
  describe('GET /threads/{threadId}/events', () => {
    let threadId: string;
    let all: Entry[];
    beforeAll(async () => {
      threadId = await longThread(world, 6);
      for (let after = '0'.repeat(26), truncated = true; truncated; after = all.at(-1)!.id) {
        const { json } = await world.client.get(`/threads/${threadId}/events?limit=1000&after=${after}`);
        all = [...(all ?? []), ...json.events];
        truncated = json.truncated;
      }
    });

    const read = async (query: string) => {
      const { status, json } = await world.client.get(`/threads/${threadId}/events${query}`);
      expect(status).toBe(200);
      return json;
    };

    test('the latest entries in chronological order, oldest first within the window', async () => {
      expect(all.length).toBeGreaterThan(1_000);
      expect((await read('?limit=7')).events).toEqual(all.slice(-7));
      const ids = all.map(({ id }) => id);
      expect(ids).toEqual([...new Set(ids)].toSorted());
    });

    test('limit: 1..1000, default 100', async () => {
      expect((await read('')).events).toEqual(all.slice(-100));
      expect((await read('?limit=1')).events).toEqual(all.slice(-1));
      expect((await read('?limit=1000')).events).toEqual(all.slice(-1_000));
      for (const limit of ['0', '1001', '-1', '1.5', '1e2', 'all', '', '1&limit=2']) {
        const reply = await world.client.get(`/threads/${threadId}/events?limit=${limit}`);
        expect([limit, ...refusal(reply)]).toEqual([limit, 400, 'invalid_request']);
      }
    });

    test('truncated: older entries exist beyond the window because the limit was reached', async () => {
      expect((await read('')).truncated).toBe(true);
      const { id } = await world.newThread();
      await world.client.post(`/threads/${id}/archive`);
      await world.client.post(`/threads/${id}/unarchive`);
      const cut = async (limit: number) =>
        (await world.client.get(`/threads/${id}/events?limit=${limit}`)).json.truncated;
      expect([await cut(1), await cut(2), await cut(3)]).toEqual([true, false, false]);
    });

    test('a Thread without entries: {events: [], truncated: false}', async () => {
      const { id } = await world.newThread();
      expect((await world.client.get(`/threads/${id}/events`)).json).toEqual({ events: [], truncated: false });
    });

    test('after gives the first limit entries after it; truncated: the limit cut it short', async () => {
      const at = all[500]!.id;
      expect(await read(`?after=${at}&limit=3`)).toEqual({ events: all.slice(501, 504), truncated: true });
      expect(await read(`?after=${at.toLowerCase()}`)).toEqual({ events: all.slice(501, 601), truncated: true });
      expect(await read(`?after=${all.at(-4)!.id}&limit=3`)).toEqual({ events: all.slice(-3), truncated: false });
      expect(await read(`?after=${all.at(-1)!.id}`)).toEqual({ events: [], truncated: false });
    });

    test('before gives the latest ones before it; truncated: older remain', async () => {
      const at = all[500]!.id;
      expect(await read(`?before=${at}&limit=3`)).toEqual({ events: all.slice(497, 500), truncated: true });
      expect(await read(`?before=${all[3]!.id}&limit=3`)).toEqual({ events: all.slice(0, 3), truncated: false });
      expect(await read(`?before=${all[0]!.id}`)).toEqual({ events: [], truncated: false });
    });

    test('after and before are event ids, else 400; one that is in no log is a place too', async () => {
      const both = `?after=${UNKNOWN}&before=${UNKNOWN}`;
      for (const query of ['?after=x', '?before=x', '?after=', `?before=${'8'.repeat(26)}`, both]) {
        expect(refusal(await world.client.get(`/threads/${threadId}/events${query}`))).toEqual([
          400,
          'invalid_request',
        ]);
      }
      expect((await read(`?after=${'0'.repeat(26)}&limit=2`)).events).toEqual(all.slice(0, 2));
      expect((await read(`?before=${'7ZZZZZZZZZZZZZZZZZZZZZZZZZ'}&limit=2`)).events).toEqual(all.slice(-2));
    });

    test('every entry ever written stays reachable, backwards too', async () => {
      const back: Entry[] = [];
      for (let query = '?limit=999', more = true; more; query = `?limit=999&before=${back[0]!.id}`) {
        const { events, truncated } = await read(query);
        back.unshift(...events);
        more = truncated;
      }
      expect(back).toEqual(all);
    });

    test('ids are stable across reads', async () => {
      expect((await read('?limit=1000')).events).toEqual((await read('?limit=1000')).events);
    });
  });

  describe('entries of the log', () => {
    let threadId: string;
    let runId: string;
    let log: Entry[];
    beforeAll(async () => {
      const waiting = await world.waitingThread({ text: 'Hello /think 50 /tool /artifact /confirm 2' });
      [threadId, runId] = [waiting.thread.id, waiting.run.id];
      const [allowed, refused] = (await world.log(threadId)).filter(
        ({ type }) => type === 'tool.confirmation.required',
      );
      await world.send(threadId, decide(allowed!.content), decide(refused!.content, 'reject_once'));
      await world.ended(threadId);
      log = await world.log(threadId);
    });

    const of = (type: string) => log.filter((entry) => entry.type === type);

    describe('Thread event log entry', () => {
      test('id: ulid, strictly increasing', () => {
        const ids = log.map(({ id }) => id);
        for (const id of ids) expect(id).toMatch(ULID);
        expect(ids).toEqual([...new Set(ids)].toSorted());
      });
      test('type: one of the documented types, and all that one Run can have are here', () => {
        const types = new Set(log.map(({ type }) => type));
        const wanted = [
          'user.message',
          'agent.message.delta',
          'agent.thinking.delta',
          'file.changed',
          'session.status',
        ];
        wanted.push('tool.use.started', 'tool.confirmation.required', 'tool.use.completed', 'usage.updated');
        expect([...types]).toEqual(expect.arrayContaining([...wanted, 'run.started', 'run.completed']));
      });
      test('occurredAt: date-time, never going back', () => {
        for (const { occurredAt } of log) expect(occurredAt).toMatch(DATE_TIME);
        const times = log.map(({ occurredAt }) => Date.parse(occurredAt));
        expect(times).toEqual(times.toSorted((a, b) => a - b));
      });
      test('runId: ulid, null when the event is not run-scoped', async () => {
        expect(new Set(log.map((entry) => entry.runId))).toEqual(new Set([runId]));
        const { id } = await world.newThread();
        await world.client.post(`/threads/${id}/archive`);
        expect((await world.log(id)).map((entry) => entry.runId)).toEqual([null]);
      });
      test('status: available, or error where it failed', () => {
        expect(log.filter(({ status }) => status !== 'available').map(({ type, status }) => [type, status])).toEqual([
          ['tool.use.completed', 'error'],
        ]);
      });
      test('content: a string, never raw runtime data', () => {
        for (const { content } of log) expect(typeof content).toBe('string');
      });
      test('durationMs: integer where applicable, else null', () => {
        const timed = new Set(log.filter(({ durationMs }) => durationMs !== null).map(({ type }) => type));
        expect([...timed].toSorted()).toEqual(['run.completed', 'tool.use.completed']);
        for (const { durationMs } of log) expect(durationMs === null || Number.isInteger(durationMs)).toBe(true);
      });
      test('tokens: integer where applicable, else null', () => {
        expect(log.filter(({ tokens }) => tokens !== null)).toEqual(of('usage.updated'));
        for (const { tokens } of of('usage.updated')) expect(Number.isInteger(tokens)).toBe(true);
      });
      test('toolCallId, toolName, toolInput: only on events of tools', () => {
        const tools = log.filter(({ type }) => type.startsWith('tool.'));
        expect(log.filter((entry) => 'toolCallId' in entry)).toEqual(tools);
        for (const { toolCallId, toolName } of tools) expect([toolCallId, toolName]).not.toContain('');
        expect(new Set(tools.map(({ toolName }) => toolName))).toEqual(new Set(['clock', 'send_note', 'write_file']));
      });
    });

    describe('by type', () => {
      test('user.message: the text; the runId of the Run it starts', () => {
        expect(of('user.message')).toMatchObject([{ content: 'Hello /think 50 /tool /artifact /confirm 2', runId }]);
      });
      test('agent.message.delta: the next piece of text; joined they equal finalOutput.text', async () => {
        const from = log.findLastIndex(({ type }) => type.startsWith('tool.'));
        const pieces = log.slice(from).filter(({ type }) => type === 'agent.message.delta');
        const { run } = (await world.client.get(`/threads/${threadId}/runs/${runId}`)).json;
        expect(pieces.map(({ content }) => content).join('')).toBe(run.finalOutput!.text);
        expect(run.finalOutput!.text).toMatch(/^You said: Hello\n/);
      });
      test('agent.thinking.delta: likewise', () => {
        expect(
          of('agent.thinking.delta')
            .map(({ content }) => content)
            .join(''),
        ).toMatch(/^Thought 1 of 5\. .*Thought 5 of 5\. $/);
      });
      test('pieces are coalesced: the first at once, then at most every 50 ms or 2 KiB', async () => {
        const { thread } = await world.endedThread({ text: '/pieces 2000' });
        const pieces = (await world.log(thread.id)).filter(({ type }) => type === 'agent.message.delta');
        // 9 KB of text in 2,000 pieces.
        expect(pieces.length).toBeLessThan(200);
        expect(pieces.length).toBeGreaterThan(3);
        for (const { content } of pieces) expect(Buffer.byteLength(content)).toBeLessThanOrEqual(2_048);
      });
      test('tool.use.started: the tool’s title; toolCallId, toolName, toolInput', () => {
        const [clock] = of('tool.use.started').filter(({ toolName }) => toolName === 'clock');
        expect(clock).toMatchObject({ content: 'Clock', toolInput: {} });
        expect(
          of('tool.use.started')
            .map(({ toolName }) => toolName)
            .toSorted(),
        ).toEqual(['clock', 'send_note', 'write_file']);
      });
      test('tool.confirmation.required: the request id to answer with; toolCallId, toolName, toolInput', () => {
        const asked = of('tool.confirmation.required');
        expect(new Set(asked.map(({ content }) => content)).size).toBe(2);
        expect(asked.map(({ toolInput }) => toolInput)).toEqual([
          { number: 1, note: 'Hello' },
          { number: 2, note: 'Hello' },
        ]);
      });
      test('tool.use.completed: a summary of the result, at most 2 KiB; durationMs; status error when refused', () => {
        const done = of('tool.use.completed');
        for (const { content } of done) expect(Buffer.byteLength(content)).toBeLessThanOrEqual(2_048);
        const notes = done.filter(({ toolName }) => toolName === 'send_note');
        expect(notes.map(({ status }) => status).toSorted()).toEqual(['available', 'error']);
        expect(notes.find(({ status }) => status === 'available')).toMatchObject({ content: 'Note 1 was sent.' });
      });
      test('events of one invocation share toolCallId, which is not the event’s id', () => {
        const calls = new Map<string, Entry[]>();
        for (const entry of log.filter(({ type }) => type.startsWith('tool.'))) {
          calls.set(entry.toolCallId!, [...(calls.get(entry.toolCallId!) ?? []), entry]);
        }
        expect(calls.size).toBe(4);
        for (const [callId, events] of calls) {
          expect(events.at(-1)!.type).toBe('tool.use.completed');
          expect(new Set(events.map(({ toolName }) => toolName)).size).toBe(1);
          expect(events.map(({ id }) => id)).not.toContain(callId);
        }
      });
      test('tools that need no permission run first; tool.use.started comes after allow_once', () => {
        const places = (toolName: string) => log.flatMap((entry, i) => (entry.toolName === toolName ? [i] : []));
        const asked = log.findIndex(({ type }) => type === 'tool.confirmation.required');
        expect(Math.max(...places('clock'), ...places('write_file'))).toBeLessThan(asked);
        const [started] = log.flatMap((entry, i) =>
          entry.type === 'tool.use.started' && entry.toolName === 'send_note' ? [i] : [],
        );
        expect(started).toBeGreaterThan(asked);
      });
      test('file.changed: the file’s id', async () => {
        const { files } = (await world.client.get(`/threads/${threadId}/files`)).json;
        expect(of('file.changed').map(({ content }) => content)).toEqual(files.map(({ id }) => id));
      });
      test('session.status: what was entered; runId of the Run that caused it', () => {
        expect(of('session.status').map(({ content }) => content)).toEqual(['RUNNING', 'IDLE']);
      });
      test('usage.updated: JSON of inputTokens and outputTokens; tokens is their sum', () => {
        expect(of('usage.updated').length).toBeGreaterThanOrEqual(2);
        for (const { content, tokens } of of('usage.updated')) {
          const usage = JSON.parse(content) as { inputTokens: number; outputTokens: number };
          expect(Object.keys(usage).toSorted()).toEqual(['inputTokens', 'outputTokens']);
          expect(usage.inputTokens + usage.outputTokens).toBe(tokens);
        }
      });
      test('run.started: the run id; once a Run, however often it is taken up again', () => {
        expect(of('run.started').map(({ content }) => content)).toEqual([runId]);
      });
      test('run.completed: the run id; durationMs', () => {
        expect(of('run.completed')).toMatchObject([{ content: runId, status: 'available' }]);
        expect(of('run.completed')[0]!.durationMs).toBeGreaterThanOrEqual(0);
      });
      test('run.failed: the error’s message, cancelled, or expired; durationMs, status error', async () => {
        const failed = await world.endedThread({ text: '/fail' });
        const cancelled = await world.waitingThread();
        await world.send(cancelled.thread.id, interrupt());
        const agentId = await world.newAgent({ limits: { waitMs: 1 } });
        const expired = await world.endedThread({ agentId, text: '/confirm' });
        const ends = await Promise.all(
          [failed, cancelled, expired].map(({ thread }) => world.entry(thread.id, 'run.failed')),
        );
        expect(ends.map(({ content }) => content)).toEqual([failed.run.error!.message, 'cancelled', 'expired']);
        for (const { status, durationMs } of ends) expect([status, typeof durationMs]).toEqual(['error', 'number']);
      });
      test('session.status: archived and unarchived', async () => {
        const { id } = await world.newThread();
        await world.client.post(`/threads/${id}/archive`);
        await world.client.post(`/threads/${id}/unarchive`);
        expect(await world.log(id)).toMatchObject([
          { type: 'session.status', content: 'archived' },
          { type: 'session.status', content: 'unarchived' },
        ]);
      });
    });

    test('status unsupported: a stored event whose type this version does not know; reading never fails', async () => {
      const { thread } = await world.endedThread();
      const { rows } = await world.pool.query<{ id: string; type: string }>(
        `select id, type from events where thread_id = $1 and public order by version desc limit 1`,
        [thread.id],
      );
      const rename = (type: string) =>
        world.pool.query('update events set type = $2 where id = $1', [rows[0]!.id, type]);
      await rename('future.event');
      try {
        const entries = await world.log(thread.id);
        const unsupported = { id: rows[0]!.id, type: 'session.status', status: 'unsupported', content: '' };
        expect(entries.at(-1)).toMatchObject(unsupported);
        const stream = await world.client.readStream(`/threads/${thread.id}/events/stream?until=idle`);
        expect(stream.entries).toEqual(entries);
      } finally {
        await rename(rows[0]!.type);
      }
    });

    test('citation markup is removed everywhere, whole envelopes are counted', async () => {
      const { thread, run } = await world.endedThread({ text: 'Hello /cite' });
      expect(run.finalOutput!.warnings).toEqual([{ code: 'unresolved_provider_citation', count: 1 }]);
      const log = await world.log(thread.id);
      expect(JSON.stringify([log, run])).not.toMatch(/[\uE200\uE201\uE202]|echo-source/);
      const pieces = log.filter(({ type }) => type === 'agent.message.delta').map(({ content }) => content);
      expect(pieces.join('')).toBe(run.finalOutput!.text);
    });

    test('runId separates the current Run from what was before', async () => {
      const { thread, run } = await world.endedThread({ text: 'one' });
      await world.send(thread.id, userMessage('two'));
      const second = await world.ended(thread.id);
      const texts = (await world.log(thread.id))
        .filter(({ runId }) => runId === second.run.id)
        .map(({ content }) => content);
      expect(texts.join(' ')).toMatch(/two/);
      expect(texts.join(' ')).not.toMatch(/one|hello/);
      expect(run.id).not.toBe(second.run.id);
    });

    test('agent.message.delta is not the final answer: finalOutput is there exactly with completed', async () => {
      const { id } = await world.newThread({ text: '/pause 5 /pieces 100' });
      for (let run = null as null | { status: string; finalOutput: unknown }; run?.status !== 'completed';) {
        ({ run } = (await world.client.get(`/threads/${id}`)).json);
        expect(run.finalOutput !== null).toBe(run.status === 'completed');
      }
    });
  });
}
