import type { Pool } from 'pg';
import { encodeTime } from 'ulid';
import type { Command } from '#domain';
import { CommandHandler, ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import type { Bench } from './bench.ts';
import { withCleanUp } from './clean-up.ts';
import { looped } from './measure.ts';
import { SIZES } from './sizes.ts';
import { handled, LEASE_MS, startThread, type HotThread } from './threads.ts';

/** At most 1.2 × the time, as a ratio of rates. */
const TARGET = { atLeast: 1 / 1.2 };
const SMALL = 10;
/** A small Thread must not become a large one: after so many appends the next is taken. */
const USES = 10;

/** Loads a Thread and appends one event. Compares a Thread of 100,000 events with Threads of 10. */
export function loadAppend({ services, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const url = await services.newDatabase(defer);
    const database = await openDatabase({ url, applicationName: 'bench', maxConnections: 1 });
    defer(() => database.close());
    const handler = new CommandHandler({ store: new ThreadStore(database.pool), leaseMs: LEASE_MS });
    const large = await threadOf(SIZES.largeThread, handler, database.pool);
    const small: HotThread[] = [];
    while (small.length < SIZES.smallThreads) small.push(await threadOf(SMALL, handler, database.pool));
    await services.asOwner(url, 'vacuum analyze');
    let uses = 0;
    const nextSmall = () => small[Math.floor(uses++ / USES) % SIZES.smallThreads] ?? large;
    await compare({
      name: `load and append, ${SIZES.largeThread.toLocaleString('en')} events beside ${SMALL}`,
      clients: 1,
      by: 'perSecond',
      subject: looped(() => appendOne(handler, large), 1),
      floors: { own: looped(() => appendOne(handler, nextSmall()), 1) },
      target: TARGET,
    });
  });
}

async function appendOne(handler: CommandHandler, { thread, fence }: HotThread): Promise<undefined> {
  const fact = { type: 'usage.recorded', data: { inputTokens: 12, outputTokens: 34 } } as const;
  const commands: Command[] = [{ type: 'record', ...fence, facts: [fact] }];
  await handled(handler, { threadId: thread.threadId, fence, commands });
}

/** A Thread with a started Run and so many events: text pieces, which change neither state nor summaries. */
async function threadOf(events: number, handler: CommandHandler, pool: Pool): Promise<HotThread> {
  const hot = await startThread(handler);
  const { threadId, version, lastOccurredAt } = hot.thread;
  // Ids behind the last one: the time part of the next millisecond, then a number.
  const prefix = encodeTime(Date.parse(lastOccurredAt ?? '') + 1, 10);
  await pool.query(
    `with added as (
       insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
       select $1, version, $3 || lpad(version::text, 16, '0'), 'assistant.text_added', 1,
              jsonb_build_object('text', 'Piece ' || version || ' of an answer. '), $5, $6, true, $7
       from generate_series($2::integer + 1, $4::integer) as version
       returning version, id
     )
     update streams set version = $4, last_event_id = (select max(id) from added) where thread_id = $1`,
    [threadId, version, prefix, events, hot.fence.runId, hot.fence.attempt, lastOccurredAt],
  );
  return hot;
}
