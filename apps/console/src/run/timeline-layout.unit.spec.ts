import type { TimelineSpan } from '#contract';
import { layOutTimeline } from './timeline-layout.ts';

const START = Date.parse('2026-11-22T09:00:00.000Z');
const at = (ms: number) => new Date(START + ms).toISOString();

function span(
  kind: TimelineSpan['kind'],
  from: number,
  to: number | null,
  more: Partial<TimelineSpan> = {},
): TimelineSpan {
  return {
    ...{ kind, name: kind, attempt: null, holder: null, startedAt: at(from), endedAt: to === null ? null : at(to) },
    ...{ outcome: 'ok', firstTextAt: null, toolCallId: null, inputTokens: null, outputTokens: null, ...more },
  };
}

const layOut = (spans: TimelineSpan[], { now = 0, shortenWaits = false } = {}) =>
  layOutTimeline(spans, START + now, { shortenWaits });
const bars = (spans: TimelineSpan[], options = {}) =>
  layOut(spans, options).rows.map(({ left, width }) => [Math.round(left), Math.round(width)]);

test('bars lie where and as long as their spans, on one axis from the first to the last', () => {
  const spans = [span('queue', 0, 100), span('model', 100, 300, { firstTextAt: at(200) }), span('tool', 300, 400)];
  expect(bars(spans)).toEqual([
    [0, 25],
    [25, 50],
    [75, 25],
  ]);
  const { rows, totalMs } = layOut(spans);
  expect(totalMs).toBe(400);
  expect(rows[1]).toMatchObject({ firstText: 50, offsetMs: 100, durationMs: 200 });
});

test('what goes on reaches until now, and never ends before it began', () => {
  expect(bars([span('queue', 0, 100), span('model', 100, null)], { now: 200 })).toEqual([
    [0, 50],
    [50, 50],
  ]);
  expect(bars([span('queue', 0, 100), span('model', 100, null)], { now: 50 })).toEqual([
    [0, 100],
    [100, 0],
  ]);
});

test('calls at the same time overlap', () => {
  expect(bars([span('tool', 0, 80), span('tool', 20, 100)])).toEqual([
    [0, 80],
    [20, 80],
  ]);
});

test('an attempt is marked where it begins', () => {
  const attempts = [null, 1, 1, null, 2, 2].map((attempt, i) => span('model', i, i + 1, { attempt }));
  expect(layOut(attempts).rows.map(({ begins }) => begins)).toEqual([null, 1, null, null, 2, null]);
});

test('ticks are round, few, and not over the edge', () => {
  const offsets = (ms: number) => layOut([span('model', 0, ms)]).ticks.map(({ offsetMs }) => offsetMs);
  expect(offsets(400)).toEqual([0, 100, 200, 300]);
  expect(offsets(61_000)).toEqual([0, 15_000, 30_000, 45_000]);
  expect(offsets(7 * 3_600_000)).toEqual([0, 2, 4, 6].map((hours) => hours * 3_600_000));
  expect(offsets(400 * 86_400_000)).toEqual([0]);
  expect(layOut([span('model', 0, 400)]).ticks[1]).toEqual({ at: 25, offsetMs: 100 });
});

test('nothing, and what took no time, have no axis', () => {
  expect(layOut([])).toEqual({ rows: [], ticks: [], totalMs: 0, hasLongWaits: false });
  expect(layOut([span('queue', 0, 0)])).toMatchObject({ rows: [{ left: 0, width: 0 }], ticks: [], totalMs: 0 });
});

describe('long waits', () => {
  const HOUR = 3_600_000;
  const spans = [
    span('model', 0, 1_000),
    span('waiting', 1_000, HOUR),
    span('queue', HOUR, HOUR + 100),
    span('model', HOUR + 100, HOUR + 1_100),
  ];

  test('are told of, and stay long unless they are to be shortened', () => {
    const { hasLongWaits, rows } = layOut(spans);
    expect(hasLongWaits).toBe(true);
    expect(rows[1]!.width).toBeGreaterThan(99);
    expect(layOut(spans.slice(0, 1)).hasLongWaits).toBe(false);
  });

  test('take a part of what was worked when they are shortened; durations stay true', () => {
    const { rows, ticks } = layOut(spans, { shortenWaits: true });
    // Of 2,300: 1,000, at most 300 together, 1,000.
    expect(rows[0]!.width).toBeCloseTo((1_000 / 2_300) * 100);
    expect(rows[3]!.width).toBeCloseTo((1_000 / 2_300) * 100);
    expect(rows[3]!.left + rows[3]!.width).toBeCloseTo(100);
    expect(rows[1]!.left).toBeCloseTo(rows[0]!.width);
    expect(rows[1]!.durationMs).toBe(HOUR - 1_000);
    expect(ticks.map(({ at: percent }) => percent)).toEqual([0, 20, 40, 60, 80]);
    expect(ticks[1]!.offsetMs).toBe(460);
    expect(ticks[3]!.offsetMs).toBeGreaterThan(HOUR);
  });

  test('are left alone where nothing was worked, or where somebody worked meanwhile', () => {
    expect(layOut([span('queue', 0, HOUR)]).hasLongWaits).toBe(false);
    expect(layOut([span('waiting', 0, HOUR), span('tool', 0, HOUR / 2)]).hasLongWaits).toBe(false);
  });

  test('are laid out at once between thousands of steps', () => {
    const steps = Array.from({ length: 4_000 }, (_, i) => span('tool', i * 10, i * 10 + 8));
    const startedAt = performance.now();
    const { rows, hasLongWaits } = layOut([...steps, span('waiting', 40_000, HOUR)], { shortenWaits: true });
    // Some milliseconds; it was half a minute where each bar went through all steps.
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(hasLongWaits).toBe(true);
    const ends = rows.map(({ left, width }) => left + width);
    expect(ends).toEqual(ends.toSorted((a, b) => a - b));
    expect(ends.at(-1)).toBeCloseTo(100);
  });
});
