import type { Pool } from 'pg';
import type { Command, RecordedFact } from '#domain';
import type { CommandHandler, Fence } from '#event-store';
import { appendDeltas, createWithMessage, handled, newId, startThread, type HotThread } from './threads.ts';

const PIECES = [15, 16];

/** Threads that are copied in one transaction. Each takes a lock of the server (migration 0016), which has room for some thousands. */
const BATCH = 1_000;

/** How many events the model Thread has. */
export const EVENTS_A_THREAD = 50;

/**
 * Fills an empty database with copies of one Thread that was made by commands: two finished Runs, 50 events, state row
 * and summaries as the appends left them. The caller runs `vacuum analyze` as the owner.
 */
export async function makeManyThreads(pool: Pool, handler: CommandHandler, threads: number): Promise<void> {
  const { threadId, runIds } = await makeModel(handler);
  // The model is copied under other ids of the same length; only columns and the state hold them, no event's data does.
  const copies = `select i, left($1, 18) || lpad(i::text, 8, '0') as thread_id,
                         left($2, 18) || '1' || lpad(i::text, 7, '0') as run_1,
                         left($3, 18) || '2' || lpad(i::text, 7, '0') as run_2
                  from generate_series($4::integer, $5::integer) as i`;
  const ids = [threadId, ...runIds];
  const runId = `case run_id when $2 then run_1 when $3 then run_2 end`;
  const statements = [
    `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
     select c.thread_id, version, id, type, schema_version, data, ${runId}, attempt, public, occurred_at
     from copies c, events e where e.thread_id = $1 order by i, version`,
    `insert into streams
     select c.thread_id, version, last_event_id, last_occurred_at, replace(state::text, $3, run_2)::jsonb
     from copies c, streams s where s.thread_id = $1`,
    `insert into thread_summaries
     select (jsonb_populate_record(s, jsonb_build_object('thread_id', c.thread_id, 'last_run_id', run_2))).*
     from copies c, thread_summaries s where s.thread_id = $1`,
    `insert into run_summaries
     select (jsonb_populate_record(s, jsonb_build_object('thread_id', c.thread_id, 'run_id', ${runId}))).*
     from copies c, run_summaries s where s.thread_id = $1`,
  ];
  for (let first = 1; first < threads; first += BATCH) {
    const last = Math.min(first + BATCH, threads) - 1;
    for (const statement of statements)
      await pool.query(`with copies as (${copies}) ${statement}`, [...ids, first, last]);
  }
}

async function makeModel(handler: CommandHandler): Promise<{ threadId: string; runIds: string[] }> {
  const hot = await startThread(handler);
  const first = hot.fence.runId;
  await finish(handler, hot, PIECES[0] ?? 0);
  const { threadId } = hot.thread;
  hot.fence = await startAnotherRun(handler, threadId);
  hot.thread = (await handled(handler, { threadId, commands: [{ type: 'start_run', ...hot.fence }] })).thread;
  await finish(handler, hot, PIECES[1] ?? 0);
  if (hot.thread.version !== EVENTS_A_THREAD) throw new Error(`the model has ${hot.thread.version} events`);
  return { threadId, runIds: [first, hot.fence.runId] };
}

async function startAnotherRun(handler: CommandHandler, threadId: string): Promise<Fence> {
  const fence = { runId: newId(), attempt: 1 };
  const message = createWithMessage(fence.runId, 'And what else?').filter(({ type }) => type === 'add_message');
  const claim: Command = { type: 'claim_run', runId: fence.runId, dispatch: 1, holder: 'bench' };
  await handled(handler, { threadId, commands: [...message, claim] });
  return fence;
}

async function finish(handler: CommandHandler, hot: HotThread, pieces: number): Promise<void> {
  for (let i = 0; i < pieces; i++) await appendDeltas(handler, hot, 1);
  const text = 'A piece of text of forty characters long.'.repeat(pieces);
  const facts: RecordedFact[] = [
    { type: 'assistant.message_added', data: { text, toolCalls: [] } },
    { type: 'usage.recorded', data: { inputTokens: 12, outputTokens: 34 } },
  ];
  const commands: Command[] = [
    { type: 'record', ...hot.fence, facts },
    { type: 'complete_run', ...hot.fence, finalOutput: { text, warnings: [] } },
  ];
  const { threadId } = hot.thread;
  hot.thread = (await handled(handler, { threadId, fence: hot.fence, commands })).thread;
}
