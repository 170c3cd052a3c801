import type { Database } from '#platform';
import { expectHealthy, expectStored } from './checks.ts';
import { inParallel, readLog } from './client.ts';
import { OUTCOMES, type KeyedClient, type Outcome, type Sent } from './keyed-client.ts';
import { expectOneAnswer } from './keyed-creates.ts';
import type { Decided, Records, Said, StandardLoadParts } from './client-records.ts';

const CONNECTIONS = 8;

/**
 * After the load, whatever went wrong meanwhile: the invariants of docs/reliability.md#invariants, of all that
 * clients, provider and tools saw.
 */
export async function expectHeld(records: Records, parts: StandardLoadParts, client: KeyedClient): Promise<void> {
  const { database, fakeProvider, callers } = parts;
  const { said } = records;
  expect(said).toHaveLength(records.asked);
  await expectMostlyOk(records, client);
  await expectOneEffectAKey(records, database, client);
  await expectStored(
    database,
    said.map(({ threadId, runId, text }) => ({ threadId, runId, text })),
  );
  await expectDecided(database, records.decided);
  await expectAllEnded(records, database);
  for (const { threadId, seen } of records.watched) {
    expect({ threadId, seen }).toEqual({ threadId, seen: await readLog(callers[0]!(), threadId) }); // I8
  }
  const logs = await inParallel([...threadsOf(said)].length, CONNECTIONS, async (i) =>
    readLog(callers[0]!(), [...threadsOf(said)][i]!),
  );
  await fakeProvider.expectHeld(said, logs.flat(), database);
  await expectHealthy(database);
}

const threadsOf = (said: readonly Said[]): Set<string> => new Set(said.map(({ threadId }) => threadId));

/** Not empty: outside of faults, at least 95 % of the requests were answered as they should be. */
async function expectMostlyOk({ faults }: Records, { requests }: KeyedClient): Promise<void> {
  const fakeProvider = requests.filter(
    ({ sentAt, answeredAt }) => !faults.some(({ from, to }) => sentAt <= to && answeredAt >= from),
  );
  const count = (list: readonly Sent[], wanted: Outcome) => list.filter(({ outcome }) => outcome === wanted).length;
  const told = (list: readonly Sent[]) => OUTCOMES.map((outcome) => `${count(list, outcome)} ${outcome}`).join(', ');
  process.stderr.write(`load: ${told(requests)}; outside of faults ${told(fakeProvider)}\n`);
  expect(fakeProvider.length).toBeGreaterThan(0);
  expect(count(fakeProvider, 'ok')).toBeGreaterThanOrEqual(0.95 * fakeProvider.length);
  expect(count(requests, 'failed')).toBe(0);
}

/** I5. Each key once more: what is answered now is what was answered then. */
async function expectOneEffectAKey(records: Records, { pool }: Database, client: KeyedClient): Promise<void> {
  const { said, decided, userId, threads } = records;
  const sent = [...said, ...decided];
  const again = await inParallel(sent.length, CONNECTIONS, (i) => client.call(i % 2, sent[i]!.request));
  expect(again.filter(({ replayed }) => !replayed)).toEqual([]);
  const byKey = new Map<string, Sent[]>(sent.map(({ request }) => [request.key, []]));
  for (const one of client.requests) byKey.get(one.key)?.push(one);
  const { rows } = await pool.query<{ key: string; status: number; body: string }>(
    'select key, status, body from idempotency_keys where key = any ($1)',
    [[...byKey.keys()]],
  );
  const stored = new Map(rows.map((row) => [row.key, row]));
  for (const [key, list] of byKey) expectOneAnswer(key, list, stored.get(key)?.status ?? 0, stored.get(key)?.body);

  const { rows: effects } = await pool.query(
    `select count(distinct thread_id)::integer as threads, count(*) filter (where type = 'message.added')::integer as messages,
            count(*) filter (where type = 'tool.confirmation_decided')::integer as decisions
     from events where thread_id in (select thread_id from thread_summaries where user_id = $1)`,
    [userId],
  );
  expect(effects).toEqual([{ threads, messages: said.length, decisions: decided.length }]);
}

/** I1 for decisions of people. */
async function expectDecided({ pool }: Database, decided: readonly Decided[]): Promise<void> {
  const { rows } = await pool.query<{ requestId: string; decision: string }>(
    `select data->>'requestId' as "requestId", data->>'decision' as decision from events
     where thread_id = any ($1) and type = 'tool.confirmation_decided'`,
    [decided.map(({ threadId }) => threadId)],
  );
  const stored = new Map(rows.map(({ requestId, decision }) => [requestId, decision]));
  expect(decided.map(({ requestId }) => [requestId, stored.get(requestId)])).toEqual(
    decided.map(({ requestId, decision }) => [requestId, decision]),
  );
}

/** I3 and I9: each Run has ended, once, and as it should; its Thread is at rest. */
async function expectAllEnded({ said }: Records, { pool }: Database): Promise<void> {
  const runIds = said.map(({ runId }) => runId);
  const ends = await pool.query<{ ends: string; runs: number }>(
    `select ends, count(*)::integer as runs from
       (select string_agg(type, ' ') as ends from events
        where thread_id = any ($1) and run_id = any ($2)
          and type in ('run.completed', 'run.failed', 'run.cancelled', 'run.expired') group by run_id) as of_runs
     group by ends`,
    [[...threadsOf(said)], runIds],
  );
  expect(ends.rows).toEqual([{ ends: 'run.completed', runs: said.length }]);
  const at = await pool.query('select distinct status from thread_summaries where thread_id = any ($1)', [
    [...threadsOf(said)],
  ]);
  expect(at.rows).toEqual([{ status: 'IDLE' }]);
  const work = await pool.query('select run_id from run_work where run_id = any ($1)', [runIds]);
  expect(work.rows).toEqual([]);
}
