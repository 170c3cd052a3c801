import type { BulkAction } from '#contract';
import { run } from './cli.testing.ts';
import { EXIT } from './exit-codes.ts';

const ID = '01JD0000000000000000000000';
const planned: BulkAction = {
  ...{ id: ID, action: 'retry', state: 'planned', filter: { errorCode: 'provider_auth' } },
  ...{ runs: 200, done: 0, notDone: 3, left: 197 },
  reasons: [
    { reason: 'The Run cannot be retried. The Thread has a newer Run.', count: 2 },
    { reason: 'The Thread is archived; unarchive it first.', count: 1 },
  ],
  touches: {
    ...{ organizations: 2, agents: 1 },
    ...{ firstCreatedAt: '2026-11-01T10:00:00.000Z', lastCreatedAt: '2026-11-29T10:00:00.000Z' },
  },
  ...{ startedBy: null, plannedAt: '2026-11-29T11:00:00.000Z', startedAt: null, endedAt: null },
};
const reasons = `3 Runs not retried:
  2  The Run cannot be retried. The Thread has a newer Run.
  1  The Thread is archived; unarchive it first.
`;

test('bulk watch says that a planned bulk action was not started', async () => {
  const { out } = await run(['bulk', 'watch', planned.id], { getBulkAction: { bulkAction: planned } });
  expect(out).toBe(`Planned for ${planned.left} Runs, and not started. Nothing was changed.\n`);
});

test('retry by filters asks with the exact number, and says what the Runs are of', async () => {
  const { code, err, calls } = await run(['run', 'retry', '--error', 'provider_auth'], {
    planBulkAction: { bulkAction: planned },
  });
  expect(code).toBe(EXIT.usage);
  expect(calls.map(({ name }) => name)).toEqual(['planBulkAction']);
  const first = 'created from 2026-11-01T10:00:00.000Z to 2026-11-29T10:00:00.000Z';
  expect(err).toBe(
    `200 Runs match, created at any time: of 1 Agent in 2 organizations, ${first}.\n` +
      `${reasons}Retry 197 Runs? Not a terminal; pass --yes to confirm.\n`,
  );
});

test('retry by filters shows its progress and its end', async () => {
  const states = [
    { ...planned, state: 'running', done: 90, left: 107 },
    { ...planned, state: 'done', done: 197, left: 0 },
  ];
  const { code, out, err, calls } = await run(
    ['run', 'retry', '--error', 'provider_auth', '--ended-since', '12h', '--yes'],
    {
      planBulkAction: { bulkAction: planned },
      startBulkAction: { bulkAction: planned },
      getBulkAction: () => ({ bulkAction: states.shift() }),
    },
  );
  expect(code).toBe(EXIT.done);
  expect(err).toBe('93 of 200 Runs: 90 retried, 3 not\n');
  expect(out).toBe(`197 of 200 Runs retried.\n${reasons}`);
  expect(calls[0]!.input).toMatchObject({
    body: { action: 'retry', filter: { errorCode: 'provider_auth', endedSince: expect.any(String) as string } },
  });
});

test.each([
  ['No Run matches. Nothing was changed.\n', { runs: 0, notDone: 0, reasons: [] }],
  [`Nothing was changed.\n${reasons}`, { runs: 3 }],
])('retry by filters without a Run to change says so, and does not ask: %j', async (text, counts) => {
  const bulkAction = { ...planned, state: 'done', left: 0, ...counts };
  const { code, out, calls } = await run(['run', 'retry', '--cause', 'x'], { planBulkAction: { bulkAction } });
  expect([code, out, calls.length]).toEqual([EXIT.done, text, 1]);
});

test.each([
  [['run', 'retry']],
  [['run', 'cancel', '--yes']],
  [['run', 'retry', ID, '--error', 'internal']],
  [['run', 'retry', ID, '--ended-since', '1h']],
  [['run', 'cancel', ID, '--agent', 'echo', '--yes']],
])('%j needs either an id or filters', async (args) => {
  const { code, err, calls } = await run(args, {});
  expect([code, calls]).toEqual([EXIT.usage, []]);
  expect(err).toMatch(/^Give either the id of a Run, or at least one filter/);
});
