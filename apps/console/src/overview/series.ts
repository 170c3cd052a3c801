import type { Overview } from '#contract';

export type Bucket = Overview['series'][number];

/** The time from which ended Runs are counted: the start of the first interval. */
export const sinceOf = ({ series, at }: Pick<Overview, 'series' | 'at'>): string => series[0]?.at ?? at;

const DAY_MINUTES = 24 * 60;

/** What a part of the window is called at the axis: the time of day, with the day where the window has several. */
export function labelOfBucket(at: string, windowMinutes: number): string {
  const clock: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  const day: Intl.DateTimeFormatOptions = windowMinutes > DAY_MINUTES ? { day: 'numeric', month: 'short' } : {};
  return new Intl.DateTimeFormat('en-GB', { ...day, ...clock }).format(new Date(at));
}

const ended = ({ completed, failed, cancelled, expired }: Bucket): number => completed + failed + cancelled + expired;

/** Runs a minute, to two places. */
const aMinute = (count: number, bucketSeconds: number): number => Math.round((count / bucketSeconds) * 6_000) / 100;

/** One point a part of the window, for all charts. */
export const pointsOf = ({
  series,
  windowMinutes,
  bucketSeconds,
}: Pick<Overview, 'series' | 'windowMinutes' | 'bucketSeconds'>) =>
  series.map((bucket) => ({
    ...bucket,
    label: labelOfBucket(bucket.at, windowMinutes),
    createdAMinute: aMinute(bucket.created, bucketSeconds),
    endedAMinute: aMinute(ended(bucket), bucketSeconds),
  }));

/** Of the whole window. */
export function totalsOf(series: Bucket[]) {
  const sum = (pick: (bucket: Bucket) => number) => series.reduce((total, bucket) => total + pick(bucket), 0);
  return {
    created: sum((bucket) => bucket.created),
    completed: sum((bucket) => bucket.completed),
    failed: sum((bucket) => bucket.failed),
    cancelled: sum((bucket) => bucket.cancelled),
    expired: sum((bucket) => bucket.expired),
    ended: sum(ended),
    mostLive: Math.max(0, ...series.map((bucket) => bucket.live)),
  };
}
