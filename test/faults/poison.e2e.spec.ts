import { incrementUlid } from '#domain';
import { rebuild, verify } from '#projections';
import { describeWithRedis, eventually, redisUrl, type SpawnedNode } from '#testing';
import {
  createAcknowledged,
  entriesOf,
  getThread,
  postEvents,
  readLog,
  readStream,
  send,
  type Caller,
} from '../support/client.ts';
import { startSystem, type System } from '../support/system.ts';

interface Poison {
  what: string;
  type: string;
  data: string;
  schemaVersion?: number;
  public?: boolean;
  /** How the Thread's next Run ends. */
  ends: 'completed' | 'thread_unreadable';
}

const POISON: Poison[] = [
  { what: 'an unknown type', type: 'future.event', data: '{"a": 1}', ends: 'completed' },
  { what: 'an unknown type without an object', type: 'future.event', data: '"text"', ends: 'completed' },
  { what: 'an unknown type, not public', type: 'run.paused', data: '{}', public: false, ends: 'completed' },
  { what: 'an unknown schema version', type: 'message.added', data: '{}', schemaVersion: 2, ends: 'thread_unreadable' },
  { what: 'a message without a text', type: 'message.added', data: '{"fileIds": []}', ends: 'thread_unreadable' },
  { what: 'usage without numbers', type: 'usage.recorded', data: '{}', ends: 'completed' },
  { what: 'a status that is none', type: 'thread.status_entered', data: 'null', ends: 'completed' },
  {
    what: 'an answer without calls',
    type: 'assistant.message_added',
    data: '{}',
    public: false,
    ends: 'thread_unreadable',
  },
  { what: 'a tool that says nothing', type: 'tool.completed', data: '{}', ends: 'thread_unreadable' },
];

describeWithRedis('an event that nobody can read (F12)', () => {
  let system: System;
  let caller: Caller;
  let worker: SpawnedNode;
  /** A Thread of each, with one completed Run and then the poison. */
  let threadIds: string[];

  beforeAll(async () => {
    system = await startSystem({ queueUrl: redisUrl().url });
    [{ caller }, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    const created = await Promise.all(POISON.map(({ what }) => createAcknowledged(caller, what)));
    threadIds = created.map(({ threadId }) => threadId);
    await Promise.all(threadIds.map((threadId) => ended(threadId)));
    for (const [i, poison] of POISON.entries()) await append(threadIds[i]!, poison);
  }, 120_000);

  afterAll(() => system.stop());

  const ended = (threadId: string) =>
    eventually(
      async () => {
        const { status, body } = await getThread(caller, threadId);
        expect(status).toBe(200);
        return body.run?.status === 'completed' || body.run?.status === 'failed' ? body.run : null;
      },
      { what: 'the newest Run has ended', timeoutMs: 20_000 },
    );

  /** As an append would, behind the last event. */
  async function append(threadId: string, poison: Poison): Promise<void> {
    const { type, data, schemaVersion = 1, public: isPublic = true } = poison;
    const { pool } = system.database;
    const { rows } = await pool.query<{ last: string }>(
      'select last_event_id as last from streams where thread_id = $1',
      [threadId],
    );
    await pool.query(
      `with stream as (
         update streams set version = version + 1, last_event_id = $6 where thread_id = $1 returning *
       )
       insert into events (thread_id, version, id, type, schema_version, data, public, occurred_at)
       select $1, version, $6, $2, $3, $4::jsonb, $5, last_occurred_at from stream`,
      [threadId, type, schemaVersion, data, isPublic, incrementUlid(rows[0]!.last)],
    );
  }

  test.each(POISON.map((poison, i) => ({ ...poison, i })))(
    '$what: all can be read',
    async ({ i, public: isPublic = true }) => {
      const threadId = threadIds[i]!;
      const log = await readLog(caller, threadId);
      if (isPublic) expect(log.at(-1)).toMatchObject({ type: 'session.status', status: 'unsupported', content: '' });
      else expect(log.at(-1)).toMatchObject({ status: 'available' });
      expect(entriesOf(await readStream(caller, `/threads/${threadId}/events/stream?until=idle`))).toEqual(log);
      const latest = await send<{ events: unknown[] }>(caller, 'GET', `/threads/${threadId}/events?limit=2`);
      expect(latest.body.events).toEqual(log.slice(-2));
      for (const path of [`/threads/${threadId}/runs`, `/agents/${caller.agentId}/threads`]) {
        expect(await send(caller, 'GET', path)).toMatchObject({ status: 200 });
      }
    },
  );

  test.each(POISON.map((poison, i) => ({ ...poison, i })))('$what: the next Run ends, $ends', async ({ i, ends }) => {
    const threadId = threadIds[i]!;
    const sent = await postEvents(caller, threadId, { type: 'user_message', text: 'and now?' });
    expect(sent.status).toBe(200);
    const { id, status, error, finalOutput } = await ended(threadId);
    if (ends === 'completed')
      expect({ status, finalOutput }).toMatchObject({
        status: 'completed',
        finalOutput: { text: 'You said: and now?' },
      });
    else expect({ status, error }).toMatchObject({ status: 'failed', error: { code: ends, retryable: false } });
    const { rows } = await system.database.pool.query(`select from events where run_id = $1 and type = 'run.claimed'`, [
      id,
    ]);
    expect(rows).toHaveLength(1);
  });

  test('others go on, in the same worker, and the whole can be verified and rebuilt', async () => {
    const { threadId } = await createAcknowledged(caller, 'beside it');
    expect(await ended(threadId)).toMatchObject({ status: 'completed' });
    expect(worker.output()).not.toMatch(/"level":"(fatal|error)"/);
    const before = await verify(system.database.pool);
    expect(before.streams).toBe(POISON.length + 1);
    expect(before.findings.filter((finding) => finding.threadId === threadId)).toEqual([]);
    const { left, streams } = await rebuild(system.database.pool);
    expect(streams).toBe(POISON.length + 1);
    expect(left).toBeGreaterThan(0);
    expect((await verify(system.database.pool)).findings).toEqual(before.findings);
  });
});
