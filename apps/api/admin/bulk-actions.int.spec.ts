import { BulkRunner } from '#admin';
import { AgentCatalogue } from '#agents';
import type { BulkAction } from '#contract';
import type { FailureCause, RunErrorCode } from '#domain';
import { createLogger } from '#platform';
import { eventually } from '#testing';
import { Threads } from '#threads';
import { AdminUnderTest } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
});
afterAll(() => admin.stop());

interface Made {
  threadId: string;
  runId: string;
}

async function newRun(agentId: string): Promise<Made> {
  const threadId = await admin.api.newThread({ agentId, text: 'hi' });
  return { threadId, runId: (await admin.do('getThread', { params: { threadId } })).runs[0]!.id };
}

const overloaded: FailureCause = { source: 'provider', name: 'api.example', status: 503, requestId: 'r' };
const FROM_EXAMPLE = 'HTTP 503 from api.example';

async function newFailure(
  agentId: string,
  code: RunErrorCode = 'provider_unavailable',
  cause = overloaded,
): Promise<Made> {
  const made = await newRun(agentId);
  await admin.api.startRun(made.threadId, made.runId);
  const error = { code, message: 'No.', retryable: false };
  const of = { runId: made.runId, attempt: 1, cause: { ...cause, message: made.runId } };
  await admin.api.happen(made.threadId, { type: 'fail_run', ...of, error, jitter: 0 });
  return made;
}

const times = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make));

async function plan(action: BulkAction['action'], filter: object): Promise<BulkAction> {
  return (await admin.do('planBulkAction', { body: { action, filter } })).bulkAction;
}

const find = async (id: string): Promise<BulkAction> =>
  (await admin.do('getBulkAction', { params: { bulkActionId: id } })).bulkAction;
const start = (id: string) => admin.do('startBulkAction', { params: { bulkActionId: id } });
const ended = (id: string): Promise<BulkAction> =>
  eventually(
    async () => {
      const bulk = await find(id);
      return bulk.state === 'done' ? bulk : undefined;
    },
    { what: 'the bulk action has ended' },
  );

const runsOf = async ({ threadId }: Made) => (await admin.do('getThread', { params: { threadId } })).runs;

test('retries the failed Runs that match, each once, and says why others are not retried', async () => {
  const agentId = await admin.api.newAgent();
  const failures = await times(5, () => newFailure(agentId));
  const [newer, archived] = [await newFailure(agentId), await newFailure(agentId)];
  await admin.do('retryRun', { params: { runId: newer.runId } });
  await admin.do('archiveThread', { params: { threadId: archived.threadId } });
  const others = [
    await newFailure(await admin.api.newAgent()),
    await newFailure(agentId, 'provider_unavailable', { ...overloaded, status: 529 }),
    await newRun(agentId),
  ];
  const filter = { agentId, cause: FROM_EXAMPLE, since: '2020-01-01T00:00:00.000Z' };
  const planned = await plan('retry', filter);
  const reasons = [
    { reason: 'The Run cannot be retried. The Thread has a newer Run.', count: 1 },
    { reason: 'The Thread is archived; unarchive it first.', count: 1 },
  ];
  expect(planned).toMatchObject({
    ...{ action: 'retry', state: 'planned', filter, runs: 7, done: 0, notDone: 2, left: 5, reasons },
    touches: { organizations: 1, agents: 1, firstCreatedAt: expect.any(String) as string },
    ...{ startedBy: null, startedAt: null, endedAt: null },
  });
  // The list has the same Runs.
  const listed = await admin.do('listRuns', { query: { agentId, cause: FROM_EXAMPLE, scope: 'all' } });
  expect(listed.runs).toHaveLength(7);
  expect(await runsOf(failures[0]!)).toHaveLength(1);
  expect((await admin.do('listBulkActions')).bulkActions).toEqual([]);

  const entries = await admin.entriesOf(async () => {
    await start(planned.id);
    const done = await ended(planned.id);
    expect(done).toMatchObject({ runs: 7, done: 5, notDone: 2, left: 0, reasons, startedBy: { name: 'Grace' } });
    // Starting it again changes nothing.
    expect((await start(planned.id)).bulkAction).toEqual(done);
  });
  expect(entries.map(({ action }) => action).toSorted()).toEqual([
    'bulk_action.started',
    ...Array<string>(5).fill('run.retried'),
  ]);
  const { runs } = await admin.do('listBulkActionRuns', { params: { bulkActionId: planned.id } });
  for (const failure of failures) {
    const [retried, first] = await runsOf(failure);
    expect([retried!.trigger, retried!.status, first!.id]).toEqual(['retry', 'queued', failure.runId]);
    expect(runs).toContainEqual({
      ...{ id: failure.runId, threadId: failure.threadId, outcome: 'done', reason: null, newRunId: retried!.id },
    });
    const entry = entries.find(({ details }) => details['newRunId'] === retried!.id);
    expect(entry).toMatchObject({ target_id: failure.runId, details: { bulkActionId: planned.id } });
  }
  for (const other of others) expect(await runsOf(other)).toHaveLength(1);
  const listedActions = (await admin.do('listBulkActions')).bulkActions;
  expect(listedActions.map(({ id }) => id)).toEqual([planned.id]);
});

test('retries Runs whose error is not retryable, and cancelled ones only if they are asked for', async () => {
  const agentId = await admin.api.newAgent();
  await newFailure(agentId, 'provider_auth');
  await newFailure(agentId, 'internal');
  const cancelled = await newRun(agentId);
  await admin.do('cancelRun', { params: { runId: cancelled.runId } });
  const failed = await plan('retry', { agentId });
  await start(failed.id);
  expect(await ended(failed.id)).toMatchObject({ runs: 2, done: 2 });
  const resumed = await plan('retry', { agentId, status: 'cancelled' });
  await start(resumed.id);
  expect(await ended(resumed.id)).toMatchObject({ runs: 1, done: 1 });
  expect((await runsOf(cancelled))[0]).toMatchObject({ trigger: 'resume', status: 'queued' });
});

test('cancels live Runs that match, and checks each Run again', async () => {
  const agentId = await admin.api.newAgent();
  const [queued, over, deleted] = await times(3, () => newRun(agentId));
  const planned = await plan('cancel', { agentId });
  expect(planned).toMatchObject({ runs: 3, left: 3, notDone: 0 });
  await admin.do('cancelRun', { params: { runId: over!.runId } });
  await admin.do('deleteThread', { params: { threadId: deleted!.threadId } });
  await start(planned.id);
  expect(await ended(planned.id)).toMatchObject({
    ...{ done: 1, notDone: 2, left: 0 },
    reasons: [
      { reason: 'The Run has ended.', count: 1 },
      { reason: 'The Thread is deleted.', count: 1 },
    ],
  });
  expect((await runsOf(queued!))[0]!.status).toBe('cancelled');
});

test('finds the live Runs of a customer that are older than a page of others', async () => {
  const agentId = await admin.api.newAgent();
  const theirs = await newRun(agentId);
  await admin.pool.query(`update thread_summaries set user_id = 'customer-7' where thread_id = $1`, [theirs.threadId]);
  await times(3, () => newRun(agentId));
  for (const limit of [1, 2]) {
    const { runs } = await admin.do('listRuns', { query: { userId: 'customer-7', limit } });
    expect(runs.map(({ id }) => id)).toEqual([theirs.runId]);
  }
  expect(await plan('cancel', { userId: 'customer-7' })).toMatchObject({ runs: 1, left: 1 });
});

test('with no match, it is done and changes nothing', async () => {
  const agentId = await admin.api.newAgent();
  await newRun(agentId);
  for (const filter of [{ agentId }, { agentId, cause: 'HTTP 418 from api.example' }])
    expect(await plan('retry', filter)).toMatchObject({ state: 'done', runs: 0, left: 0 });
});

test('refuses a status that the action cannot change, and more than 10,000 Runs', async () => {
  const body = { action: 'cancel', filter: { status: 'failed' } };
  const message = 'body.filter.status: must be one of queued, booting, running, waiting_input';
  expect(await admin.refused('planBulkAction', { body })).toEqual(['invalid_request', message]);

  const agentId = await admin.api.newAgent();
  const { threadId } = await newFailure(agentId);
  await admin.pool.query(
    `insert into run_summaries select (jsonb_populate_record(r, jsonb_build_object('run_id', '01AAAAAAAAAAAAAAAAAA' || lpad(i::text, 6, '0')))).*
     from run_summaries r, generate_series(1, 10000) i where r.thread_id = $1`,
    [threadId],
  );
  const tooMany = ['conflict', 'More than 10000 Runs match. Add a filter, such as a time.'];
  expect(await admin.refused('planBulkAction', { body: { action: 'retry', filter: { agentId } } })).toEqual(tooMany);
});

test('two processes that work on one bulk action change no Run twice', async () => {
  const agentId = await admin.api.newAgent();
  const failures = await times(40, () => newFailure(agentId));
  const { id } = await plan('retry', { agentId });
  const app = admin.api.app;
  const parts = {
    pool: admin.pool,
    threads: app.get(Threads, { strict: false }),
    agents: app.get(AgentCatalogue, { strict: false }),
  };
  const second = new BulkRunner({ ...parts, logger: createLogger('silent', 'bulk spec') });
  const entries = await admin.entriesOf(async () => {
    await start(id);
    for (let left = 40; left > 0; { left } = await find(id)) {
      // Ends the lease of the first process, as if it had stalled.
      await admin.pool.query('update bulk_actions set leased_until = null where id = $1', [id]);
      second.nudge();
    }
    await ended(id);
    await second.stop();
  });
  expect(entries.filter(({ action }) => action === 'run.retried')).toHaveLength(40);
  for (const failure of failures) expect(await runsOf(failure)).toHaveLength(2);
});

test('can be stopped: the Runs that are left stay unchanged', async () => {
  const agentId = await admin.api.newAgent();
  const failures = await times(30, () => newFailure(agentId));
  const { id } = await plan('retry', { agentId });
  const first = failures.map(({ threadId }) => threadId).toSorted();
  const client = await admin.pool.connect();
  await client.query('begin');
  // No Thread of the first batch can be changed meanwhile.
  await client.query('select from streams where thread_id = any($1) for update', [first]);
  await start(id);
  await admin.do('stopBulkAction', { params: { bulkActionId: id } });
  await client.query('rollback');
  client.release();
  // The batch of 20 ends. The next bulk action begins after it.
  await eventually(async () => (await find(id)).done === 20, { what: 'the batch has ended' });
  const other = await admin.api.newAgent();
  await newFailure(other);
  const next = await plan('retry', { agentId: other });
  await start(next.id);
  await ended(next.id);
  expect(await find(id)).toMatchObject({ state: 'stopped', done: 20, notDone: 0, left: 10 });
  const runs = await Promise.all(failures.map(runsOf));
  expect(runs.filter(({ length }) => length === 1)).toHaveLength(10);
  const refused = await admin.refused('startBulkAction', { params: { bulkActionId: id } });
  expect(refused).toEqual(['conflict', 'The bulk action was stopped. Plan another one.']);
});

test('cannot be started an hour after it was planned', async () => {
  const agentId = await admin.api.newAgent();
  await newFailure(agentId);
  const { id } = await plan('retry', { agentId });
  await admin.pool.query(`update bulk_actions set planned_at = now() - interval '61 minutes' where id = $1`, [id]);
  const refused = await admin.refused('startBulkAction', { params: { bulkActionId: id } });
  expect(refused).toEqual(['conflict', 'The bulk action was planned over an hour ago. Plan another one.']);
});

test('listRuns filters Runs by the time of their end, and by whether they can be retried', async () => {
  const agentId = await admin.api.newAgent();
  const [retried, failure] = [await newFailure(agentId), await newFailure(agentId)];
  const { run: newer } = await admin.do('retryRun', { params: { runId: retried.runId } });
  const newerRunIdOf = async ({ runId }: typeof retried) =>
    (await admin.do('getRun', { params: { runId } })).run.newerRunId;
  expect([await newerRunIdOf(retried), await newerRunIdOf(failure)]).toEqual([newer.id, null]);
  const idsOf = async (query: object) =>
    (await admin.do('listRuns', { query: { agentId, status: 'failed', scope: 'all', ...query } })).runs.map(
      ({ id }) => id,
    );
  expect(await idsOf({ mayBeRetried: 'true' })).toEqual([failure.runId]);
  expect(await idsOf({ mayBeRetried: 'false' })).toEqual([retried.runId]);
  const { completedAt } = (await admin.do('getRun', { params: { runId: failure.runId } })).run;
  expect(await idsOf({ endedSince: completedAt! })).toEqual([failure.runId]);
});

test('filters suggest the values that begin with, or contain, the typed text', async () => {
  const agentId = await admin.api.newAgent();
  const { threadId } = await newFailure(agentId, 'provider_unavailable', { ...overloaded, name: 'suggested.example' });
  await admin.pool.query(
    `update thread_summaries set user_id = 'Suggested-7', client_external_ref = 'Order-4711' where thread_id = $1`,
    [threadId],
  );
  const valuesOf = async (of: 'errorCode' | 'cause' | 'userId' | 'externalRef', text?: string) =>
    (await admin.do('suggestFilterValues', { query: { of, text } })).values;
  expect(await valuesOf('cause', 'SUGGESTED')).toEqual(['HTTP 503 from suggested.example']);
  expect(await valuesOf('errorCode', 'unavail')).toEqual(['provider_unavailable']);
  expect(await valuesOf('errorCode')).toContain('provider_unavailable');
  expect(await valuesOf('userId', 'suggested')).toEqual(['Suggested-7']);
  expect(await valuesOf('userId', 'uggested')).toEqual([]);
  expect(await valuesOf('externalRef', 'order-4')).toEqual(['Order-4711']);
});
