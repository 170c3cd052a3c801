import type { Command } from '#domain';
import { eventually } from '#testing';
import { AdminUnderTest, type Answer, type Given } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
beforeEach(async () => {
  admin = await AdminUnderTest.start();
});
afterEach(() => admin.stop());

type Overview = Answer<'getOverview'>['overview'];

/** Leaves out a slow database, which a busy test machine causes. */
const problemsOf = ({ problems }: Overview) => problems.filter(({ kind }) => kind !== 'database_slow');

/** Returns the first overview for which the condition is true. Waits until the cached one has expired. */
async function overviewWhere(what: string, condition: (overview: Overview) => boolean): Promise<Overview> {
  let last: Overview | undefined;
  await eventually(
    async () => {
      last = (await admin.do('getOverview')).overview;
      return condition(last);
    },
    { what, timeoutMs: 30_000 },
  );
  return last!;
}

const has = (kind: string) => (overview: Overview) => overview.problems.some((problem) => problem.kind === kind);
/** Returns the Runs that the link of a problem lists. */
const listed = async (query: Given<'listRuns'>['query']): Promise<string[]> =>
  (await admin.do('listRuns', { query: query! })).runs.map(({ id }) => id);

const problem = (overview: Overview, kind: string) => overview.problems.find((each) => each.kind === kind);

async function newRun(): Promise<{ threadId: string; runId: string }> {
  const threadId = await admin.api.newThread({ text: 'hi' });
  return { threadId, runId: (await admin.do('getThread', { params: { threadId } })).runs[0]!.id };
}

const failed = (runId: string, retryable: boolean): Command => ({
  ...({ type: 'fail_run', runId, attempt: 1, jitter: 0 } as const),
  error: { code: 'provider_auth', message: 'No.', retryable },
});

test('the overview of an empty installation has no problem except the missing worker', async () => {
  const { overview } = await admin.do('getOverview', { query: { windowMinutes: 5 } });
  expect(problemsOf(overview).map(({ kind, severity }) => [kind, severity])).toEqual([['no_worker', 'warning']]);
  expect(overview).toMatchObject({
    windowMinutes: 5,
    bucketSeconds: 5,
    failures: [],
    redis: null,
    startLatency: { count: 0 },
  });
  expect(overview.series).toHaveLength(60);
  expect(Object.values(overview.runs)).toEqual(Array(8).fill(0));
  const { version, connections, maxConnections, sizeBytes } = overview.database;
  expect(version).toMatch(/^\d+\.\d+/);
  expect(connections).toBeGreaterThan(0);
  expect(maxConnections).toBeGreaterThan(connections);
  expect(sizeBytes).toBeGreaterThan(1_000_000);
});

test('the overview counts Runs that ended within the window, and lists failed ones to retry', async () => {
  await admin.pool.query(`insert into workers (holder, slots, seen_at) values ('w', 3, now() + interval '1 h')`);
  const done = await newRun();
  await admin.api.completeRun(done.threadId, done.runId);
  const broken = await newRun();
  await admin.api.startRun(broken.threadId, broken.runId);
  await admin.api.happen(broken.threadId, failed(broken.runId, false));
  const archived = await newRun();
  await admin.api.startRun(archived.threadId, archived.runId);
  await admin.api.happen(archived.threadId, failed(archived.runId, false));
  await admin.api.happen(archived.threadId, { type: 'archive' });
  const overview = await overviewWhere('both failures are shown', ({ runs }) => runs.failed === 2);
  expect(overview.runs).toMatchObject({ completed: 1, failed: 2, queued: 0 });
  expect(overview.failures).toMatchObject([{ code: 'provider_auth', count: 2, lastRunId: archived.runId }]);
  expect(overview.startLatency.count).toBe(3);
  expect(overview.startLatency.p50Ms).toBeGreaterThanOrEqual(0);
  const sums = overview.series.reduce(
    (sum, { created, completed, failed: f }) => [sum[0]! + created, sum[1]! + completed, sum[2]! + f],
    [0, 0, 0],
  );
  expect(sums).toEqual([3, 1, 2]);
  expect(overview.series.at(-1)?.live).toBe(0);
  expect(problemsOf(overview)).toMatchObject([
    {
      kind: 'failed_runs',
      count: 1,
      message: '1 Run of echo failed: provider_auth. Fix the cause, then retry it.',
      runs: [{ id: broken.runId, threadId: broken.threadId, agentName: 'echo', status: 'failed', mayBeRetried: true }],
    },
  ]);
  // After a new message, there is nothing left to do.
  const message = { type: 'user_message', text: 'again' };
  await admin.api.post(`/threads/${broken.threadId}/events`, { body: { events: [message] } });
  await overviewWhere('the failed Run is no problem any more', (next) => !has('failed_runs')(next));
});

test('the overview reports a dead worker, a waiting Run and a paused queue', async () => {
  const lost = await newRun();
  await admin.api.startRun(lost.threadId, lost.runId);
  const asking = await newRun();
  await admin.api.startRun(asking.threadId, asking.runId);
  const requests = [{ requestId: 'r', toolCallId: 'c' }];
  await admin.api.happen(asking.threadId, { type: 'wait_for_decisions', runId: asking.runId, attempt: 1, requests });
  const queued = await newRun();
  await admin.do('pauseQueue');
  await admin.pool.query(`update run_work set due_at = now() - interval '6 s' where run_id = $1`, [lost.runId]);
  await admin.pool.query(`update run_work set since = now() - interval '61 s' where run_id = $1`, [queued.runId]);
  const overview = await overviewWhere(
    'both problems are shown',
    (next) => has('queue_paused')(next) && has('lease_over')(next),
  );
  expect(overview.runs).toMatchObject({ queued: 1, booting: 0, running: 1, waiting_input: 1 });
  expect(overview.series.at(-1)?.live).toBe(3);
  const kinds = problemsOf(overview).map(({ kind }) => kind);
  expect(kinds).toEqual(['no_worker', 'lease_over', 'queue_paused', 'waiting_runs']);
  expect(problem(overview, 'lease_over')).toMatchObject({ count: 1, runs: [{ id: lost.runId, status: 'running' }] });
  expect(await listed({ problem: 'lease_over' })).toEqual([lost.runId]);
  expect(problem(overview, 'waiting_runs')).toMatchObject({ count: 1, runs: [{ id: asking.runId }] });
  await admin.do('resumeQueue');
  await admin.do('cancelRun', { params: { runId: lost.runId } });
  const repaired = await overviewWhere(
    'both problems are gone',
    (next) => !has('queue_paused')(next) && !has('lease_over')(next),
  );
  expect(problem(repaired, 'backlog')).toMatchObject({ severity: 'critical', count: 1, runs: [{ id: queued.runId }] });
  expect(await listed({ problem: 'backlog' })).toEqual([queued.runId]);
});

test('the overview reports a provider that fails while Runs wait for it', async () => {
  const cause = { source: 'provider', name: 'api.example', status: 503 } as const;
  await admin.pool.query(
    `insert into provider_circuits (id, code, cause, opened_at, probe_at, probing_until, last_turn)
     select id, 'provider_unavailable', $1, now() - interval '1 h', now(), now(), now()
     from unnest('{awaited,deserted}'::text[]) as id`,
    [JSON.stringify(cause)],
  );
  const { threadId, runId } = await newRun();
  await admin.api.startRun(threadId, runId);
  const error = { code: 'provider_unavailable', message: 'No.', retryable: true } as const;
  const turn = { circuit: 'awaited', waitMs: 60_000 };
  await admin.api.happen(threadId, { type: 'fail_run', runId, attempt: 1, error, jitter: 0, cause, turn });
  const overview = await overviewWhere('the Run waits', has('provider_failing'));
  expect(overview.problems.filter(({ kind }) => kind === 'provider_failing')).toMatchObject([
    {
      message: expect.stringContaining(
        '1 Run waits for a model provider: provider_unavailable, HTTP 503 from',
      ) as string,
      runs: [{ id: runId, status: 'queued', mayBeRetried: false }],
    },
  ]);
  const summary = overview.problems.find(({ kind }) => kind === 'provider_failing')!.cause!;
  // The last attempt of the Run had another cause: its circuit decides.
  await admin.pool.query(`update run_summaries set cause = cause || '{"status":429}' where run_id = $1`, [runId]);
  expect(await listed({ problem: 'provider_failing', cause: summary })).toEqual([runId]);
  expect(await listed({ problem: 'provider_failing', cause: 'HTTP 429 from api.example' })).toEqual([]);
  await admin.do('cancelRun', { params: { runId } });
  await overviewWhere('nothing waits', (next) => !has('provider_failing')(next));
});

test('the overview reports files with lost bytes until they are restored or deleted', async () => {
  await admin.pool.query(
    `insert into files (id, thread_id, kind, name, size, sha256, blob_key, lost_at)
     values ('L1', 'T', 'attachment', 'a', 1, '', 'a', now() - interval '1 hour'),
            ('L2', 'T', 'attachment', 'a', 1, '', 'a', now())`,
  );
  const overview = await overviewWhere('the loss is shown', has('lost_files'));
  expect(problem(overview, 'lost_files')).toMatchObject({ severity: 'critical', count: 2, runs: [] });
  await admin.pool.query(`delete from files where id = 'L1'`);
  await admin.pool.query(`update files set lost_at = null where id = 'L2'`);
  await overviewWhere('the loss is over', (next) => !has('lost_files')(next));
  await admin.pool.query(`delete from files where id = 'L2'`);
});

test('a problem names at most five Runs, the oldest first', async () => {
  const all = [];
  for (let i = 0; i < 6; i++) all.push((await newRun()).runId);
  await admin.pool.query(`update run_work set since = since - interval '11 s'`);
  const overview = await overviewWhere('the backlog is shown', (next) => problem(next, 'backlog')?.count === 6);
  expect(problem(overview, 'backlog')?.runs.map(({ id }) => id)).toEqual(all.slice(0, 5));
});

test('parallel requests for the same window share one overview', async () => {
  const of = async (windowMinutes: number) => (await admin.do('getOverview', { query: { windowMinutes } })).overview;
  const [first, second, third, another] = await Promise.all([of(5), of(5), of(5), of(60)]);
  // Two measured overviews are never equal.
  expect([second, third]).toEqual([first, first]);
  expect([first.windowMinutes, another.windowMinutes]).toEqual([5, 60]);
  const isNew = async () => (await of(5)).at > first.at;
  await eventually(isNew, { what: 'a new overview is measured', timeoutMs: 30_000 });
});

test('the start latency leaves out Runs that waited while an operator had paused the queue', async () => {
  const before = await overviewWhere('it is read', () => true);
  await admin.do('pauseQueue');
  const paused = await newRun();
  await admin.do('resumeQueue');
  await admin.api.startRun(paused.threadId, paused.runId);
  const other = await newRun();
  await admin.api.startRun(other.threadId, other.runId);
  const created = before.series.reduce((sum, part) => sum + part.created, 0);
  const after = await overviewWhere(
    'both Runs are counted',
    ({ series }) => series.reduce((sum, part) => sum + part.created, 0) === created + 2,
  );
  expect(after.startLatency.count).toBe(before.startLatency.count + 1);
});
