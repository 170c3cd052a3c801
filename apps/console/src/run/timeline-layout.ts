import type { TimelineSpan } from '#contract';

/** A span and where its bar lies, in percent of the axis. */
export interface TimelineRow {
  span: TimelineSpan;
  left: number;
  width: number;
  /** Where its first text came; null without one. */
  firstText: number | null;
  /** From the Run's creation to its beginning, and how long it took or has taken until now. Milliseconds. */
  offsetMs: number;
  durationMs: number;
  /** The attempt that begins with this row; null where it is that of the row before. */
  begins: number | null;
}

export interface TimelineTick {
  /** Percent of the axis. */
  at: number;
  offsetMs: number;
}

export interface TimelineLayout {
  rows: TimelineRow[];
  ticks: TimelineTick[];
  totalMs: number;
  /** Whether waits are so long that what lies between them would hardly be seen. */
  hasLongWaits: boolean;
}

interface Interval {
  from: number;
  to: number;
}

const WAITS: ReadonlySet<TimelineSpan['kind']> = new Set(['queue', 'delay', 'waiting']);
/** Waits are long when together they take more than this part of the whole. */
const LONG_WAITS = 0.9;
/** A shortened wait takes this part of what was worked, and at least so many milliseconds. */
const SHORT_WAIT = { part: 0.15, ms: 50 };
const TICKS = 5;

/**
 * Bars of spans on one axis, which begins with the first of them and ends with the last, or now. With `shortenWaits`
 * the axis runs faster where nothing but a wait went on.
 */
export function layOutTimeline(
  spans: readonly TimelineSpan[],
  now: number,
  { shortenWaits }: { shortenWaits: boolean },
): TimelineLayout {
  const intervals = spans.map(({ startedAt, endedAt }) => toInterval(startedAt, endedAt, now));
  const from = intervals.reduce((least, interval) => Math.min(least, interval.from), Infinity);
  const to = intervals.reduce((most, interval) => Math.max(most, interval.to), -Infinity);
  const totalMs = spans.length === 0 ? 0 : to - from;
  const worked = unite(intervals.filter((_, i) => !WAITS.has(spans[i]!.kind)));
  const workedMs = worked.reduce((sum, interval) => sum + interval.to - interval.from, 0);
  const hasLongWaits = totalMs > 0 && workedMs > 0 && (totalMs - workedMs) / totalMs > LONG_WAITS;
  const axis = makeAxis({ from, to }, shortenWaits && hasLongWaits ? worked : null);
  let attempt: number | null = null;
  const rows = spans.map((span, i): TimelineRow => {
    const interval = intervals[i]!;
    const left = axis.percent(interval.from);
    const begins = span.attempt === attempt ? null : span.attempt;
    attempt = span.attempt ?? attempt;
    return {
      ...{ span, left, begins, width: axis.percent(interval.to) - left },
      firstText: span.firstTextAt === null ? null : axis.percent(Date.parse(span.firstTextAt)),
      offsetMs: interval.from - from,
      durationMs: interval.to - interval.from,
    };
  });
  return { rows, ticks: axis.ticks(), totalMs, hasLongWaits };
}

function toInterval(startedAt: string, endedAt: string | null, now: number): Interval {
  const from = Date.parse(startedAt);
  // The browser's clock may be behind the service's.
  return { from, to: Math.max(from, endedAt === null ? now : Date.parse(endedAt)) };
}

/** The union, in order and without overlaps. */
function unite(intervals: Interval[]): Interval[] {
  const united: Interval[] = [];
  for (const { from, to } of intervals.toSorted((a, b) => a.from - b.from)) {
    const last = united.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else united.push({ from, to });
  }
  return united;
}

interface Segment extends Interval {
  /** What it takes of the axis, in the axis' own unit. */
  length: number;
}

function makeAxis(whole: Interval, worked: Interval[] | null) {
  const segments = worked === null ? [{ ...whole, length: whole.to - whole.from }] : cutAtWaits(whole, worked);
  let length = 0;
  const starts = segments.map((segment) => (length += segment.length) - segment.length);
  const percent = (time: number): number => {
    if (!(length > 0)) return 0;
    const i = segmentAt(segments, time);
    const { from, to, length: taken } = segments[i]!;
    const part = to === from ? 0 : Math.min(1, Math.max(0, (time - from) / (to - from)));
    return ((starts[i]! + part * taken) / length) * 100;
  };
  const timeAt = (at: number): number => {
    let rest = (at / 100) * length;
    for (const segment of segments) {
      if (rest <= segment.length && segment.length > 0)
        return segment.from + (rest / segment.length) * (segment.to - segment.from);
      rest -= segment.length;
    }
    return whole.to;
  };
  const ticks = (): TimelineTick[] => {
    if (!(length > 0)) return [];
    if (worked === null) return roundSteps(length).map((offsetMs) => ({ at: (offsetMs / length) * 100, offsetMs }));
    return Array.from({ length: TICKS }, (_, i) => {
      const at = (i / TICKS) * 100;
      return { at, offsetMs: Math.round(timeAt(at) - whole.from) };
    });
  };
  return { percent, ticks };
}

/** By halves: a Run of thousands of steps has as many pieces, and is laid out each second while it waits. */
function segmentAt(segments: readonly Segment[], time: number): number {
  let [low, high] = [0, segments.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (segments[middle]!.from <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The axis in pieces: as long as they took where something was done, shorter where it was only waited. */
function cutAtWaits(whole: Interval, worked: Interval[]): Segment[] {
  const workedMs = worked.reduce((sum, { from, to }) => sum + to - from, 0);
  const longest = Math.max(SHORT_WAIT.ms, workedMs * SHORT_WAIT.part);
  const segments: Segment[] = [];
  let at = whole.from;
  for (const { from, to } of [...worked, { from: whole.to, to: whole.to }]) {
    if (from > at) segments.push({ from: at, to: from, length: Math.min(longest, from - at) });
    if (to > from) segments.push({ from, to, length: to - from });
    at = Math.max(at, to);
  }
  return segments;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Steps that people read easily; milliseconds. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 28].map((days) => days * DAY),
];

function roundSteps(length: number): number[] {
  const step = STEPS.find((candidate) => length / candidate <= TICKS) ?? length;
  // The last would stand over the edge.
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, i) => i * step).filter((at) => at < length * 0.95);
}
