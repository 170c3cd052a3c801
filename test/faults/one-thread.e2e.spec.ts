import { createAgent, publishAgentVersion } from '#agents';
import { eventually, reportFigure } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import { createThread, inParallel, readLog, send, type Caller, type Json } from '../support/client.ts';
import {
  unexplained,
  type AnswerBody,
  type Asked,
  type Call,
  type History,
  type HistoryEvent,
} from '../support/one-thread-history.ts';
import { freshSeed, seededRandom, type Random } from '../support/random.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

const CONCURRENT = 64;
const CALLS = 3 * CONCURRENT;
const REQUESTS = 3;
const DELETES = 6;
const ROUNDS = isLong ? 20 : 1;
/** Seeds that once failed. */
const KEPT: number[] = [];
const WHEN_BUSY = ['reject', 'enqueue', 'interrupt'] as const;

describe('one Thread, called from everywhere at once, over two api processes (F17)', () => {
  let system: System;
  let callers: Caller[];
  /** How often each kind of call had each answer, over all rounds. */
  const seen = new Map<string, number>();

  beforeAll(async () => {
    system = await startSystem({ env: { RATE_LIMIT_PER_MINUTE: '1000000000' } });
    const [one, two] = await Promise.all([system.startApi(), system.startApi(), system.startWorker()]);
    callers = [one.caller, two.caller];
    // A deletion leaves no event: what it deletes is kept for the checker.
    await system.database.pool.query(`
      create table deleted_events (like events);
      create function keep_deleted() returns trigger language plpgsql as
        $$ begin insert into deleted_events select (old).*; return null; end $$;
      create trigger keep_deleted after delete on events for each row execute function keep_deleted()`);
  }, 120_000);

  afterAll(() => system.stop());

  const first = freshSeed();
  const seeds = [...KEPT, ...Array.from({ length: ROUNDS }, (_, i) => first + i)];

  test.each(seeds.flatMap((seed) => WHEN_BUSY.map((whenBusy) => ({ seed, whenBusy }))))(
    `${CONCURRENT} concurrent decisions, interrupts and messages are explained by the stream (whenBusy $whenBusy, seed $seed)`,
    async ({ seed, whenBusy }) => {
      const random = seededRandom(seed, `one Thread, ${whenBusy}`);
      const { threadId, runId, requestIds, startVersion } = await waitingThread(whenBusy);
      const plan = Array.from({ length: CALLS }, (_, i) => planCall(random, i, runId, requestIds));
      const calls = await inParallel(CALLS, CONCURRENT, (i) => callOnce(callers[i % 2]!, threadId, plan[i]!));
      // Where no Run waits in line, one of two interrupts in a row is refused, whatever came before.
      for (const caller of callers) calls.push(await callOnce(caller, threadId, { kind: 'interrupt', runId: null }));
      const events = await storedEvents(threadId);
      const history: History = { calls, events, whenBusy, startVersion };
      expect(unexplained(history)).toEqual([]);
      expectOneWinnerEach(calls, requestIds);
      for (const { asked, status } of calls) count(`${asked.kind} ${status}`);
      await expectHealthy(system.database);
    },
    upTo(30_000),
  );

  test.each(seeds)(
    `deletes among them: one deletes, and after it nothing is found (seed %d)`,
    async (seed) => {
      const random = seededRandom(seed, 'one Thread, deleted');
      const { threadId, runId, requestIds, startVersion } = await waitingThread('interrupt');
      const isDelete = new Set([
        CONCURRENT + random.below(CONCURRENT),
        ...random.sample(DELETES, CALLS - 8).map((i) => i + 8),
      ]);
      const plan = Array.from({ length: CALLS }, (_, i): Asked =>
        isDelete.has(i) ? { kind: 'delete' } : planCall(random, i, runId, requestIds),
      );
      const calls = await inParallel(CALLS, CONCURRENT, (i) => callOnce(callers[i % 2]!, threadId, plan[i]!));
      expect(await storedEvents(threadId)).toEqual([]);
      const before = await storedEvents(threadId, 'deleted_events');
      const deleted = { version: before.length + 1, transaction: 'deleted', type: 'deleted', data: {}, runId: null };
      const events = [...before, { ...deleted, occurredAt: null }];
      expect(unexplained({ calls, events, whenBusy: 'interrupt', startVersion })).toEqual([]);
      const statuses = calls.filter(({ asked }) => asked.kind === 'delete').map(({ status }) => status);
      expect(statuses.toSorted()).toEqual([200, ...statuses.slice(1).map(() => 404)]);
      expect(calls.some(({ asked, status }) => asked.kind === 'message' && status === 404)).toBe(true);
      await expectHealthy(system.database);
    },
    upTo(30_000),
  );

  test('and it was not empty: each kind of call was accepted, and each was refused', () => {
    const told = [...seen].map(([what, times]) => `${what}: ${times}`).toSorted();
    reportFigure(`F17: ${told.join(', ')}`);
    const kinds = ['decision', 'interrupt', 'message'];
    expect([...seen.keys()].toSorted()).toEqual(kinds.flatMap((kind) => [`${kind} 200`, `${kind} 409`]));
  });

  const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);

  /** A Thread whose Run waits for answers to several requests. */
  async function waitingThread(whenBusy: History['whenBusy']) {
    const caller = { ...callers[0]!, agentId: await newAgent(whenBusy) };
    const { body } = await createThread(caller, `/confirm ${REQUESTS} notes`);
    const threadId = body.thread.id;
    const isWaiting = async (): Promise<string[] | false> => {
      const events = await storedEvents(threadId);
      return events.some(({ type }) => type === 'run.waiting') && askedFor();
    };
    const askedFor = async (): Promise<string[]> =>
      (await readLog(caller, threadId))
        .filter(({ type }) => type === 'tool.confirmation.required')
        .map(({ content }) => content);
    const requestIds = await eventually(isWaiting, { what: 'the Run waits', timeoutMs: 15_000 });
    expect(requestIds).toHaveLength(REQUESTS);
    const startVersion = (await storedEvents(threadId)).length;
    return { threadId, runId: body.run!.id, requestIds, startVersion };
  }

  async function newAgent(whenBusy: History['whenBusy']): Promise<string> {
    const { pool } = system.database;
    const { rows } = await pool.query<{ organizationId: string; ownerPersonId: string }>(
      'select organization_id as "organizationId", owner_person_id as "ownerPersonId" from agents limit 1',
    );
    const manifest = { name: whenBusy, harness: { name: 'echo' }, whenBusy };
    const agentId = await createAgent(pool, { ...rows[0]!, manifest });
    await publishAgentVersion(pool, agentId, manifest);
    return agentId;
  }

  async function storedEvents(threadId: string, table = 'events'): Promise<HistoryEvent[]> {
    const { rows } = await system.database.pool.query<Omit<HistoryEvent, 'occurredAt'> & { occurredAt: string }>(
      `select version, transaction_id::text as transaction, type, data, run_id as "runId", occurred_at as "occurredAt"
       from ${table} where thread_id = $1 order by version`,
      [threadId],
    );
    return rows.map((row) => ({ ...row, occurredAt: Date.parse(row.occurredAt) }));
  }
});

/** Decisions first, and few interrupts: each ends the Run that the others are about. */
function planCall(random: Random, i: number, runId: string, requestIds: readonly string[]): Asked {
  const requestId = random.below(10) === 0 ? 'unknown' : random.pick(requestIds);
  const decision: Asked = { kind: 'decision', requestId, decision: random.pick(['allow_once', 'reject_once']) };
  if (i < 8) return decision;
  const kind = random.below(10);
  if (kind < 4) return decision;
  if (kind < 6) return { kind: 'interrupt', runId: random.pick([null, null, runId]) };
  // Some Runs last, and wait for a person themselves.
  return { kind: 'message', text: `${random.pick(['', '/confirm ', '/pieces 20 /pause 5 '])}message ${i}` };
}

async function callOnce(caller: Caller, threadId: string, asked: Asked): Promise<Call> {
  const sentAt = Date.now();
  const path = `/threads/${threadId}`;
  const { status, body } =
    asked.kind === 'delete'
      ? await send<AnswerBody>(caller, 'DELETE', path)
      : await send<AnswerBody>(caller, 'POST', `${path}/events`, { events: [toEvent(asked)] });
  return { asked, sentAt, answeredAt: Date.now(), status, body };
}

function toEvent(asked: Exclude<Asked, { kind: 'delete' }>): Json {
  switch (asked.kind) {
    case 'message':
      return { type: 'user_message', text: asked.text };
    case 'decision':
      return { type: 'permission_decision', requestId: asked.requestId, decision: asked.decision };
    case 'interrupt':
      return { type: 'user_interrupt', runId: asked.runId };
  }
}

/** Whatever the checker says: at most one decision on each request was accepted. */
function expectOneWinnerEach(calls: readonly Call[], requestIds: readonly string[]): void {
  const winners = calls.flatMap(({ asked, status }) =>
    asked.kind === 'decision' && status === 200 ? [asked.requestId] : [],
  );
  expect(winners.toSorted()).toEqual([...new Set(winners)].toSorted());
  for (const requestId of winners) expect(requestIds).toContain(requestId);
}
