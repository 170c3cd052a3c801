import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stepId, toExtendedLogEntry, type Command } from '#domain';
import { createLogger } from '#platform';
import { QueueControls } from '#run-queue';
import { eventually } from '#testing';
import { makeWorld, type World } from './engine.testing.ts';
import { expectInvariants } from './oracle.testing.ts';
import type { ReaperOptions } from './reaper.ts';

let world: World;
beforeEach(async () => {
  world = await makeWorld();
});
afterEach(() => world.close());

const { signal } = new AbortController();
/** Reaps until a limit of 1 ms has passed by the database's clock. */
const reapUntilExpired = async (runId: string) => {
  const reapAndLook = async () => (await world.makeReaper().reap(signal), (await summaryOf(runId)) === 'expired');
  await eventually(reapAndLook, { what: 'the Run is expired' });
};
const causeOf = async (runId: string): Promise<unknown> => {
  const { rows } = await world.pool.query<{ cause: unknown }>('select cause from run_summaries where run_id = $1', [
    runId,
  ]);
  return rows[0]?.cause;
};
const summaryOf = async (runId: string) => (await world.summary(runId)).status;

it('reclaims a Run whose lease has ended, and no other', async () => {
  const [lost, held] = [await world.say('a'), await world.say('b')];
  for (const { threadId, runId } of [lost, held]) {
    await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'gone' });
  }
  await world.endLease(lost.runId);
  await world.makeReaper().reap(signal);
  expect(await world.run(lost.threadId, lost.runId)).toMatchObject({ status: 'queued', dispatch: 2, losses: 1 });
  expect(await world.run(held.threadId, held.runId)).toMatchObject({ status: 'booting', attempt: 1 });
  expect(world.jobs.at(-1)).toEqual({ threadId: lost.threadId, runId: lost.runId, dispatch: 2 });
});

it('names a step of the lost worker that is stored during the reclaim', async () => {
  const { threadId, runId } = await world.say('a');
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'gone' });
  await world.endLease(runId);
  const delta = { type: 'assistant.text_added', data: { text: 'Late', step: 1 } } as const;
  let late: Command[] = [
    { type: 'start_run', runId, attempt: 1 },
    { type: 'record', runId, attempt: 1, facts: [delta] },
  ];
  const handle: ReaperOptions['handler']['handle'] = async (request) => {
    if (late.length > 0) await world.handle(threadId, ...late);
    late = [];
    return world.handler.handle(request);
  };
  await world.makeReaper(undefined, undefined, { handle }).reap(signal);
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'queued', dispatch: 2 });
  const entries = (await world.stream(threadId)).map((event) => toExtendedLogEntry(event));
  expect(entries.at(-1)).toMatchObject({ voidedStepId: stepId(runId, 1, 1) });
  expect(await causeOf(runId)).toEqual({ source: 'worker', name: 'gone', attempt: 1, step: 'model step 1' });
});

it('stores the worker that was lost, and the tool that had started', async () => {
  const { threadId, runId } = await world.say('a');
  const call = { toolCallId: 'c', toolName: 'look', title: 'Look it up', toolInput: {} };
  const fence = { runId, attempt: 1 };
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'gone' });
  await world.handle(
    threadId,
    { ...fence, type: 'start_run' },
    { ...fence, type: 'record', facts: [{ type: 'tool.started', data: call }] },
  );
  await world.endLease(runId);
  await world.makeReaper().reap(signal);
  expect(await causeOf(runId)).toEqual({ source: 'worker', name: 'gone', attempt: 1, step: 'Look it up' });
});

it('searches the step of the lost worker only back to its claim', async () => {
  const { threadId, runId } = await world.say('a');
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'gone' });
  await world.ownerPool.query(
    `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
     select $1, -n, 'earlier ' || n, 'assistant.text_added', 1, '{}', 'earlier', 1, false, now() from generate_series(1, 5000) n`,
    [threadId],
  );
  await world.ownerPool.query('analyze events');
  const statement = readFileSync(join(import.meta.dirname, 'find-open-step.sql'), 'utf8');
  const { rows } = await world.pool.query<{ 'QUERY PLAN': string }>(`explain (analyze) ${statement}`, [
    threadId,
    runId,
    1,
  ]);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, count]) => Number(count));
  expect(Math.max(0, ...removed)).toBeLessThan(10);
});

it('logs the end of each claim', async () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger('info', 'story', { write });
  const { threadId, runId } = await world.say('a');
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'gone' });
  await world.endLease(runId);
  await world.makeReaper(undefined, logger).reap(signal);
  const { engine } = await world.makeWorker({ logger });
  await engine.executeJob(world.jobs.at(-1)!);
  const about = { threadId, runId };
  expect(lines).toMatchObject([
    { ...about, attempt: 1, holder: 'gone', msg: 'lease expired; run reclaimed' },
    { ...about, attempt: 2, ms: expect.any(Number) as number, status: 'ended', msg: 'run released' },
  ]);
});

it('does not reclaim a Run that is renewed between the look and the append', async () => {
  const { threadId, runId } = await world.say('a');
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'slow' });
  await world.endLease(runId);
  // The look reads the old row. The append waits for the renewal, and then checks again.
  const renewal = await world.pool.connect();
  await renewal.query('begin');
  await renewal.query(`update run_work set due_at = clock_timestamp() + interval '10 s' where run_id = $1`, [runId]);
  const reaping = world.makeReaper().reap(signal);
  await waitUntilBlocked();
  await renewal.query('commit');
  renewal.release();
  await reaping;
  expect(await world.run(threadId, runId)).toMatchObject({ status: 'booting', attempt: 1 });
});

async function waitUntilBlocked(): Promise<void> {
  for (;;) {
    const { rowCount } = await world.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (rowCount !== 0) return;
  }
}

it('expires a Run at its work limit, even if a worker holds it', async () => {
  const { threadId, runId } = await world.say('a', { limits: { workMs: 1 } });
  await world.handle(threadId, { type: 'claim_run', runId, dispatch: 1, holder: 'busy' });
  await reapUntilExpired(runId);
});

it('expires a Run that waited too long for a worker, but not while the queue is paused', async () => {
  const { runId, threadId } = await world.say('a', { limits: { queueMs: 1 } });
  await world.makeReaper(() => true).reap(signal);
  expect(await summaryOf(runId)).toBe('queued');
  await reapUntilExpired(runId);
  expectInvariants(await world.stream(threadId));
});

it('does not expire a Run that waited for an unavailable queue, during or after the outage', async () => {
  const { runId } = await world.say('a');
  await world.pool.query(
    `update run_work set due_at = due_at - interval '9 minutes', since = since - interval '9 minutes'`,
  );
  const controls = new QueueControls(world.pool, 'queue');
  await controls.noteUnavailable();
  const later = `interval '1 hour'`;
  await world.pool.query(`update queue_controls set paused_at = paused_at - ${later}`);
  await world.pool.query(`update run_work set due_at = due_at - ${later}, since = since - ${later}`);
  const reap = async () => {
    const held = await controls.isHeld();
    await world.makeReaper(() => held).reap(signal);
  };
  await reap();
  expect(await summaryOf(runId)).toBe('queued');
  await controls.noteAvailable();
  expect(await controls.isHeld()).toBe(false);
  await reap();
  expect(await summaryOf(runId)).toBe('queued');
  // The last minute of its queue time; 9 have passed.
  await world.pool.query(`update run_work set due_at = due_at - interval '1 minute'`);
  await reap();
  expect(await summaryOf(runId)).toBe('expired');
});

it('expires a Run that waited too long for a person', async () => {
  const { engine } = await world.makeWorker();
  const { job, runId } = await world.say('a /confirm', { limits: { waitMs: 1 } });
  await engine.executeJob(job);
  await reapUntilExpired(runId);
});

it('handles the other Runs if one fails, and looks again immediately after a full batch', async () => {
  const broken = await world.say('broken', { limits: { queueMs: 1 } });
  const others = [];
  for (let i = 0; i < 110; i++) others.push(await world.say('x', { limits: { queueMs: 1 } }));
  await world.pool.query(`update streams set state = '{"lifecycle": "active"}' where thread_id = $1`, [
    broken.threadId,
  ]);
  const reaper = world.makeReaper();
  expect(await reaper.reap(signal)).toBe(0);
  expect(await reaper.reap(signal)).toBeGreaterThan(0);
  const { rows } = await world.pool.query<{ run_id: string }>('select run_id from run_work');
  expect(rows).toEqual([{ run_id: broken.runId }]);
});

it('finds due Runs by indexes among many that are not due', async () => {
  await world.pool.query(
    `insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, due_at, since, queue_ms, work_left)
     select i::text, i::text, 'o', 'a', 'ready', 1, 0, now() + interval '1 hour', now(), 1, interval '1 hour'
     from generate_series(1, 20000) as i`,
  );
  await world.ownerPool.query('analyze run_work');
  const { readFileSync } = await import('node:fs');
  const text = readFileSync(`${import.meta.dirname}/find-due-runs.sql`, 'utf8');
  const { rows } = await world.pool.query<Record<'QUERY PLAN', string>>(`explain ${text}`, [false, [], 100]);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/run_work_due/);
  expect(plan).not.toMatch(/Seq Scan/);
});
