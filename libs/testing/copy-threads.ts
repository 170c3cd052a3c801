import type { Pool } from 'pg';

/** A Thread that was made by commands, and what in it differs in each copy. */
export interface ModelThread {
  threadId: string;
  /** Oldest first, at most two. */
  runIds: readonly string[];
  agentId: string;
  /** Eight digits, in the text of its messages and in its user's id. */
  digits: string;
}

export interface Copies {
  /** Of each, eight digits at most: what its ids end with, and what its texts have in place of the model's digits. */
  numbers: number[];
  /** How long before the model it was, seconds. */
  ages: number[];
  /** The first ten characters of its ids: its time. */
  times: string[];
  /** Whose they are, in turn. */
  agentIds: string[];
}

const COPIES = `
  select n as number, lpad(n::text, 8, '0') as digits, age * interval '1 second' as age,
         $7::text[] as agents, ($7::text[])[1 + n % cardinality($7::text[])] as agent_id,
         time || 'TTTTTTTT' || lpad(n::text, 8, '0') as thread_id,
         time || 'RRRRRRR1' || lpad(n::text, 8, '0') as run_1,
         time || 'RRRRRRR2' || lpad(n::text, 8, '0') as run_2,
         time || 'EE'       || lpad(n::text, 8, '0') as event
  from unnest($4::integer[], $5::float8[], $6::text[]) as c (n, age, time)`;

const runId = (column: string): string => `case ${column} when $2 then run_1 when $3 then run_2 end`;
const eventId = (version: string): string => `event || lpad(${version}::text, 6, '0')`;
/** Only the first event and messages of people hold what differs. */
const changed = (json: string): string =>
  `replace(replace(replace(replace(${json}::text, $9, digits), $8, agent_id), $2, run_1), coalesce($3, $2), run_2)::jsonb`;

const STATEMENTS = [
  `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
   select c.thread_id, version, ${eventId('version')}, type, schema_version,
          case when type in ('thread.created', 'message.added') then ${changed('data')} else data end,
          ${runId('run_id')}, attempt, public, occurred_at - age
   from copies c, events e where e.thread_id = $1 order by number, version`,
  `insert into streams (thread_id, version, last_event_id, last_occurred_at, state)
   select c.thread_id, version, ${eventId('version')}, last_occurred_at - age, ${changed('state')}
   from copies c, streams s where s.thread_id = $1 order by number`,
  `insert into thread_summaries
   select (jsonb_populate_record(s, jsonb_build_object(
     'thread_id', c.thread_id, 'agent_id', c.agent_id, 'last_run_id', ${runId('last_run_id')},
     'user_id', replace(user_id, $9, digits), 'external_ref', replace(external_ref, $9, digits), 'title', replace(title, $9, digits),
     'created_at', created_at - age, 'updated_at', updated_at - age))).*
   from copies c, thread_summaries s where s.thread_id = $1 order by number`,
  `insert into run_summaries
   select (jsonb_populate_record(r, jsonb_build_object(
     'thread_id', c.thread_id, 'run_id', ${runId('run_id')}, 'created_at', created_at - age, 'started_at', started_at - age,
     'completed_at', completed_at - age, 'updated_at', updated_at - age))).*
   from copies c, run_summaries r where r.thread_id = $1 order by number, r.run_id`,
  `insert into run_work
   select (jsonb_populate_record(w, jsonb_build_object(
     'thread_id', c.thread_id, 'run_id', ${runId('run_id')}, 'agent_id', c.agent_id))).*
   from copies c, run_work w where w.thread_id = $1 order by number`,
];

/** Threads that are copied in one transaction. Each takes a lock of the server (migration 0016), which has room for some thousands. */
const BATCH = 2_000;

/**
 * Copies a Thread under other ids of the same length, with everything that its appends have left: events, state row, summaries, work
 * rows. The second Run's id has the time of the first.
 */
export async function copyThread(pool: Pool, { threadId, runIds, agentId, digits }: ModelThread, copies: Copies) {
  for (let at = 0; at < copies.numbers.length; at += BATCH) {
    const [numbers, ages, times] = [copies.numbers, copies.ages, copies.times].map((all) => all.slice(at, at + BATCH));
    const values = [threadId, runIds[0], runIds[1] ?? null, numbers, ages, times, copies.agentIds, agentId, digits];
    for (const statement of STATEMENTS) {
      // Each names all values, though not each needs them all: PostgreSQL must know their types.
      const types = 'select $1::text, $2::text, $3::text, $8::text, $9::text';
      await pool.query(`with types as (${types}), copies as (${COPIES}) ${statement}`, values);
    }
  }
}
