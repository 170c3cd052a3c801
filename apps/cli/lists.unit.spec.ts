import { run } from './cli.testing.ts';

const ID = '01JD0000000000000000000000';
const createdAt = '2026-11-21T12:00:00.000Z';

const runsPage = { runs: [], nextCursor: null };

test.each<[string[], object]>([
  [[], { scope: 'live' }],
  [['--ended'], { scope: 'all' }],
  [['--status', 'running'], { scope: 'live', status: 'running' }],
  [['--status', 'failed'], { scope: 'all', status: 'failed' }],
  [['--may-be-retried'], { scope: 'all', mayBeRetried: 'true' }],
  [['--ended-since', '2026-11-22'], { scope: 'all', endedSince: '2026-11-22T00:00:00.000Z' }],
  [
    ['--error', 'provider_auth', '--since', '2026-11-22'],
    {
      ...{ scope: 'all', errorCode: 'provider_auth', since: '2026-11-22T00:00:00.000Z' },
    },
  ],
])('run list %p', async (given, query) => {
  const { code, calls } = await run(['run', 'list', ...given], { listRuns: runsPage });
  expect([code, calls]).toEqual([0, [{ name: 'listRuns', input: { query } }]]);
});

test.each([
  [{ status: 'failed', mayBeRetried: true, newerRunId: null }, 'yes', 'Fix it.'],
  [{ status: 'failed', mayBeRetried: false, newerRunId: ID }, `no: its Thread has the newer Run ${ID}`, '-'],
  [{ status: 'failed', mayBeRetried: false, newerRunId: null }, 'no: its Thread is archived or terminated', '-'],
  [{ status: 'failed', mayBeRetried: false }, 'no', '-'],
  [{ status: 'completed', mayBeRetried: false, newerRunId: ID }, 'no', '-'],
  [{ status: 'queued', mayBeRetried: false, newerRunId: null }, '-', '-'],
])('a Run %p says why it cannot be retried, and what to do only if it can', async (given, mayBeRetried, remedy) => {
  const { out } = await run(['run', 'retry', ID], {
    retryRun: { run: { id: ID, work: null, remedy: 'Fix it.', ...given } },
  });
  const valueOf = (name: string) => new RegExp(`^${name} {2,}(.*)$`, 'm').exec(out)?.[1];
  expect([valueOf('may be retried'), valueOf('remedy')]).toEqual([mayBeRetried, remedy]);
});

test('run events reads all pages by version, oldest first', async () => {
  const event = { version: 7, type: 'tool.completed', occurredAt: createdAt, data: { result: 'sunny' } };
  const pages = [
    { events: [event], nextAfterVersion: 7 },
    { events: [{ ...event, version: 9 }], nextAfterVersion: null },
  ];
  const { out, calls } = await run(['run', 'events', ID, '--all'], { listRunEvents: () => pages.shift() });
  const query = (afterVersion?: string) => ({ input: { params: { runId: ID }, query: { afterVersion } } });
  expect(calls).toMatchObject([query(), query('7')]);
  expect(out).toMatch(/\n7 +\S+Z +tool\.completed .*\{"result":"sunny"\}\n9 .*\n$/);
});

test.each([
  ['--search', 'an invoice', { search: 'an invoice' }],
  ['--external-ref', 'order 1042', { externalRef: 'order 1042' }],
])('thread list %s', async (flag, value, query) => {
  const threads = { threads: [], nextCursor: null };
  const { calls } = await run(['thread', 'list', flag, value], { listThreads: threads });
  expect(calls).toEqual([{ name: 'listThreads', input: { query } }]);
});
