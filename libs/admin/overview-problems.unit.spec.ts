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
const unavailable = { status: 'away', version: null, latencyMs: null, usedBytes: null } as const;
const run = { id: 'r', threadId: 't', agentName: 'a', status: 'failed', error: null, mayBeRetried: true } as const;
const found = (kind: FoundRuns['kind'], count = 1): Partial<Found> => ({
  found: [{ kind, count, since, runs: [run], agentId: 'A', agentName: 'support', code: 'internal', cause: null }],
});
const problems = (changed: Partial<Found> = {}) =>
  problemsOf({ found: [], queue: well, database: { latencyMs: 1 }, redis, ...changed });
const queue = (changed: Partial<QueueStatus>): Partial<Found> => ({ queue: { ...well, ...changed } });
const ready = { ...well.runs, ready: 1 };

test('reports no problems for a healthy installation, with and without Redis', () => {
  expect(problems()).toEqual([]);
  expect(problems({ redis: null })).toEqual([]);
});

test('each failing provider is a problem, with its cause', () => {
  const cause = { source: 'provider', name: 'api.example', status: 503 } as const;
  const row = { kind: 'provider_failing' as const, since, runs: [run], agentId: null, agentName: null };
  const rows = [
    { ...row, count: 14, code: 'provider_unavailable', cause },
    { ...row, count: 1, code: 'provider_rate_limited', cause: null },
  ];
  expect(problems({ found: rows })).toMatchObject([
    {
      ...{ kind: 'provider_failing', severity: 'warning', count: 14, since, runs: [run] },
      message: expect.stringMatching(
        /^14 Runs wait for a model provider: provider_unavailable, HTTP 503 from api\.example\. /,
      ) as string,
    },
    {
      count: 1,
      message: expect.stringMatching(/^1 Run waits for a model provider: provider_rate_limited\. /) as string,
    },
  ]);
});

test.each<[string, Partial<Found>, object[]]>([
  [
    'a warning above 250 ms of database latency',
    { database: { latencyMs: 251 } },
    [{ kind: 'database_slow', severity: 'warning' }],
  ],
  [
    'a critical problem above 1 s of database latency',
    { database: { latencyMs: 1_001 } },
    [{ kind: 'database_slow', severity: 'critical' }],
  ],
  ['a pause by an operator', queue({ pausedAt: since }), [{ kind: 'queue_paused', severity: 'warning', since }]],
  [
    'a pause by a BullMQ tool',
    queue({ pausedAt: since, pausedBy: ['spool', 'bullmq'] }),
    [
      {
        kind: 'queue_paused',
        since,
        message: expect.stringMatching(/^A BullMQ tool .* Resume it, and find out/) as string,
      },
    ],
  ],
  [
    'workers that cannot reach the queue',
    queue({ awaySince: since }),
    [{ kind: 'queue_away', severity: 'critical', since }],
  ],
  [
    'a process that cannot reach the queue',
    queue({ offered: null }),
    [{ kind: 'queue_away', severity: 'warning', since: null }],
  ],
  ['an unavailable Redis with the queue', { redis: unavailable }, [{ kind: 'redis_away', severity: 'critical' }]],
  [
    'an unavailable Redis without the queue',
    { redis: unavailable, ...queue({ backend: 'postgresql' }) },
    [{ severity: 'warning' }],
  ],
  ['no live worker while no Run waits', queue({ workers: [] }), [{ kind: 'no_worker', severity: 'warning' }]],
  [
    'no live worker while a Run waits',
    queue({ workers: [], runs: ready }),
    [{ kind: 'no_worker', severity: 'critical' }],
  ],
  [
    'expired leases',
    found('lease_over', 7),
    [{ kind: 'lease_over', severity: 'critical', count: 7, since, runs: [run] }],
  ],
  ['lost files', found('lost_files', 2), [{ kind: 'lost_files', severity: 'critical', count: 2, since }]],
  ['no problem for a backlog of up to 10 s', { ...found('backlog'), ...queue({ oldestReadyMs: 10_000 }) }, []],
  [
    'a warning for a backlog above 10 s',
    { ...found('backlog'), ...queue({ oldestReadyMs: 10_001 }) },
    [{ kind: 'backlog', severity: 'warning' }],
  ],
  [
    'a critical problem for a backlog above 60 s',
    { ...found('backlog'), ...queue({ oldestReadyMs: 60_001 }) },
    [{ severity: 'critical', count: 1 }],
  ],
  [
    'only the pause for a backlog of a paused queue',
    { ...found('backlog'), ...queue({ oldestReadyMs: 60_001, pausedAt: since }) },
    [{ kind: 'queue_paused' }],
  ],
  [
    'failed Runs',
    found('failed_runs'),
    [{ kind: 'failed_runs', severity: 'warning', count: 1, runs: [run], agentId: 'A', errorCode: 'internal' }],
  ],
  ['Runs that wait for a person', found('waiting_runs'), [{ kind: 'waiting_runs', severity: 'info', count: 1, since }]],
])('reports %s', (_, changed, expected) => {
  const reported = problems(changed);
  expect(reported).toMatchObject(expected);
  expect(reported).toHaveLength(expected.length);
  for (const { message } of reported) expect(message).toMatch(/\. [A-Z].*\.$/);
});

describe('failed Runs', () => {
  const at = (minute: number): string => `2026-11-22T09:0${minute}:00.000Z`;
  const provider = { source: 'provider', name: 'api.example', status: 503 } as const;
  const group = (agentName: string, count: number, more: Partial<FoundRuns> = {}): FoundRuns => ({
    ...{ kind: 'failed_runs', count, since, runs: [run], code: 'provider_unavailable', cause: provider },
    ...{ agentId: agentName, agentName, ...more },
  });
  const described = (...groups: FoundRuns[]) =>
    problems({ found: groups }).map(({ message, count }) => [count, message]);

  test('are counted by Agent and cause, the most first', () => {
    const again = group('support', 3, { cause: { ...provider, code: 'overloaded' }, since: at(0), runs: [run, run] });
    const groups = [
      group('sales', 2),
      group('support', 1),
      again,
      group('sales', 9, { cause: null, code: 'internal' }),
    ];
    expect(described(...groups)).toEqual([
      [9, '9 Runs of sales failed: internal. Fix the cause, then retry them.'],
      [4, '4 Runs of support failed: provider_unavailable, HTTP 503 from api.example. Fix the cause, then retry them.'],
      [2, '2 Runs of sales failed: provider_unavailable, HTTP 503 from api.example. Fix the cause, then retry them.'],
    ]);
    expect(described(group('sales', 1))).toEqual([
      [1, '1 Run of sales failed: provider_unavailable, HTTP 503 from api.example. Fix the cause, then retry it.'],
    ]);
    expect(problems({ found: groups })[1]).toMatchObject({ since: at(0), runs: [run, run, run] });
  });

  test('have one problem for all causes but the most frequent', () => {
    const groups = Array.from({ length: 7 }, (_, i) => group(`agent ${i}`, 10 - i));
    const messages = described(...groups);
    expect(messages).toHaveLength(5);
    expect(messages.at(-1)).toEqual([
      15,
      '15 Runs of 3 other Agents or causes failed. Fix the cause, then retry them.',
    ]);
  });
});

test('sorts problems by severity', () => {
  const all = problems({ ...found('waiting_runs'), ...queue({ pausedAt: since, workers: [], runs: ready }) });
  expect(all.map(({ kind }) => kind)).toEqual(['no_worker', 'queue_paused', 'waiting_runs']);
});
