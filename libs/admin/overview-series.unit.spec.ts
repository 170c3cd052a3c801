import type { QueueStatus } from '#contract';
import { seriesOf, wholeOf, type Part } from './overview-series.ts';

const none = {
  ...{ created: 0, started: 0, starts: null, completed: 0, failed: 0, cancelled: 0, expired: 0, live: 0, booting: 0 },
};
const row = (part: number | null, counts: Partial<Part>): Part => ({ part, ...none, ...counts });
const window = { since: '2026-11-22T09:00:00.000Z', seconds: 60, parts: 3 };
const runs = { ready: 1, delayed: 2, limited: 4, leased: 8, waiting: 16 };
const queue = { runs } as QueueStatus;

test('returns every part and derives its live Runs from those of now', () => {
  const rows = [
    row(null, { created: 6, starts: [1, 2, 3] }),
    row(null, { completed: 2, failed: 1 }),
    row(null, { live: 5 }),
    row(0, { created: 4, starts: [10, 20, 30] }),
    row(2, { created: 2, starts: [null, null, null] }),
    row(2, { completed: 2, failed: 1 }),
  ];
  expect(seriesOf(rows, window)).toEqual([
    {
      ...{ at: '2026-11-22T09:00:00.000Z', created: 4, completed: 0, failed: 0, cancelled: 0, expired: 0 },
      ...{ live: 6, startP50Ms: 10, startP95Ms: 20 },
    },
    {
      ...{ at: '2026-11-22T09:01:00.000Z', created: 0, completed: 0, failed: 0, cancelled: 0, expired: 0 },
      ...{ live: 6, startP50Ms: null, startP95Ms: null },
    },
    {
      ...{ at: '2026-11-22T09:02:00.000Z', created: 2, completed: 2, failed: 1, cancelled: 0, expired: 0 },
      ...{ live: 5, startP50Ms: null, startP95Ms: null },
    },
  ]);
});

test('counts Runs of a fast clock in the last part and never returns a negative count', () => {
  const rows = [row(null, { live: 0 }), row(2, { created: 1 }), row(7, { created: 2, starts: [5, 5, 5] })];
  expect(seriesOf(rows, window)).toMatchObject([{ live: 0 }, { live: 0 }, { created: 3, live: 0, startP50Ms: 5 }]);
});

test('returns the Runs of the window by status, and their start latency', () => {
  const rows = [
    row(null, { created: 9, started: 7, starts: [-2, 20, 30] }),
    row(null, { completed: 1, failed: 2, cancelled: 3, expired: 4 }),
    row(null, { live: 31, booting: 3 }),
    row(1, { created: 9, completed: 1 }),
  ];
  expect(wholeOf(rows, queue)).toEqual({
    runs: {
      ...{ queued: 7, booting: 3, running: 5, waiting_input: 16 },
      ...{ completed: 1, failed: 2, cancelled: 3, expired: 4 },
    },
    startLatency: { count: 7, p50Ms: 0, p95Ms: 20, p99Ms: 30 },
  });
});
