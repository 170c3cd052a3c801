import type { QueueStatus } from '#contract';
import { problemsOf, type Found, type FoundRuns } from './overview-problems.ts';

const since = '2026-11-22T09:00:00.000Z';
const worker = { holder: 'w', slots: 2, leased: 0, seenAt: since };
const well: QueueStatus = {
  ...{
    name: 'q',
    backend: 'redis',
    pausedAt: null,
    awaySince: null,
    offered: 0,
    oldestReadyMs: null,
    workers: [worker],
  },
  runs: { ready: 0, leased: 0, waiting: 0, delayed: 0, limited: 0 },
};
const redis = { status: 'ok', version: '7', latencyMs: 1, usedBytes: 1 } as const;
const away = { status: 'away', version: null, latencyMs: null, usedBytes: null } as const;
const run = { id: 'r', threadId: 't', agentName: 'a', status: 'failed', error: null, mayBeRetried: true } as const;
const found = (kind: FoundRuns['kind'], count = 1, retryable = 0): Partial<Found> => ({
  found: [{ kind, count, retryable, since, runs: [run] }],
});
const problems = (changed: Partial<Found> = {}) =>
  problemsOf({ found: [], queue: well, database: { latencyMs: 1 }, redis, ...changed });
const queue = (changed: Partial<QueueStatus>): Partial<Found> => ({ queue: { ...well, ...changed } });
const ready = { ...well.runs, ready: 1 };

test('nothing is wrong where all is well, with and without Redis', () => {
  expect(problems()).toEqual([]);
  expect(problems({ redis: null })).toEqual([]);
});

test.each<[string, Partial<Found>, object[]]>([
  ['the database is slow', { database: { latencyMs: 251 } }, [{ kind: 'database_slow', severity: 'warning' }]],
  ['and slower', { database: { latencyMs: 1_001 } }, [{ kind: 'database_slow', severity: 'critical' }]],
  ['the queue is paused', queue({ pausedAt: since }), [{ kind: 'queue_paused', severity: 'warning', since }]],
  [
    'a BullMQ tool has paused the queue',
    queue({ pausedAt: since, pausedBy: ['spool', 'bullmq'] }),
    [
      {
        kind: 'queue_paused',
        since,
        message: expect.stringMatching(/^A BullMQ tool .* Resume it, and find out/) as string,
      },
    ],
  ],
  ['the workers miss the queue', queue({ awaySince: since }), [{ kind: 'queue_away', severity: 'critical', since }]],
  ['this process does', queue({ offered: null }), [{ kind: 'queue_away', severity: 'warning', since: null }]],
  ['the queue’s Redis is away', { redis: away }, [{ kind: 'redis_away', severity: 'critical' }]],
  ['another Redis is', { redis: away, ...queue({ backend: 'postgresql' }) }, [{ severity: 'warning' }]],
  ['no worker, and nothing to do', queue({ workers: [] }), [{ kind: 'no_worker', severity: 'warning' }]],
  ['no worker, and Runs wait', queue({ workers: [], runs: ready }), [{ kind: 'no_worker', severity: 'critical' }]],
  [
    'leases are over',
    found('lease_over', 7),
    [{ kind: 'lease_over', severity: 'critical', count: 7, since, runs: [run] }],
  ],
  ['files are lost', found('lost_files', 2), [{ kind: 'lost_files', severity: 'critical', count: 2, since }]],
  ['Runs wait', { ...found('backlog'), ...queue({ oldestReadyMs: 10_000 }) }, []],
  ['longer', { ...found('backlog'), ...queue({ oldestReadyMs: 10_001 }) }, [{ kind: 'backlog', severity: 'warning' }]],
  ['for long', { ...found('backlog'), ...queue({ oldestReadyMs: 60_001 }) }, [{ severity: 'critical', count: 1 }]],
  [
    'and the queue is paused',
    { ...found('backlog'), ...queue({ oldestReadyMs: 60_001, pausedAt: since }) },
    [{ kind: 'queue_paused' }],
  ],
  ['a Run has failed', found('failed_runs'), [{ kind: 'failed_runs', severity: 'warning', count: 1, runs: [run] }]],
  ['a Run waits for a person', found('waiting_runs'), [{ kind: 'waiting_runs', severity: 'info', count: 1, since }]],
])('%s', (_, changed, expected) => {
  const told = problems(changed);
  expect(told).toMatchObject(expected);
  expect(told).toHaveLength(expected.length);
  for (const { message } of told) expect(message).toMatch(/\. [A-Z].*\.$/);
});

test.each([
  [1, 1, 'retry it.'],
  [2, 2, 'retry them.'],
  [2, 0, 'fix the cause'],
  [3, 1, 'retry the 1 that can be'],
])('of %d Runs that failed, %d can be retried: %s', (count, retryable, words) => {
  expect(problems(found('failed_runs', count, retryable))[0]?.message).toContain(words);
});

test('the worst comes first', () => {
  const all = problems({ ...found('waiting_runs'), ...queue({ pausedAt: since, workers: [], runs: ready }) });
  expect(all.map(({ kind }) => kind)).toEqual(['no_worker', 'queue_paused', 'waiting_runs']);
});
