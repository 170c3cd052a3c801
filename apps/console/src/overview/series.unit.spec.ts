import { labelOfBucket, pointsOf, totalsOf, type Bucket } from './series.ts';
import { nameOfWindow, windowOf } from '../components/windows.ts';

const bucket = (more: Partial<Bucket>): Bucket => ({
  at: '2026-11-22T12:00:00.000Z',
  ...{ created: 0, completed: 0, failed: 0, cancelled: 0, expired: 0, live: 0 },
  ...{ startP50Ms: null, startP95Ms: null },
  ...more,
});

it('makes rates a minute of the counts of a part', () => {
  const series = [bucket({ created: 3, completed: 1, failed: 1, cancelled: 1, expired: 1 })];
  expect(pointsOf({ series, windowMinutes: 15, bucketSeconds: 15 })).toMatchObject([
    { createdAMinute: 12, endedAMinute: 16 },
  ]);
});

it('adds up the window', () => {
  const totals = totalsOf([bucket({ created: 2, completed: 1, live: 4 }), bucket({ failed: 2, expired: 1, live: 3 })]);
  expect(totals).toEqual({ created: 2, completed: 1, failed: 2, cancelled: 0, expired: 1, ended: 4, mostLive: 4 });
  expect(totalsOf([]).mostLive).toBe(0);
});

it('names the day only where the window has several', () => {
  expect(labelOfBucket('2026-11-22T12:00:00.000Z', 1_440)).toMatch(/^\d\d:\d\d$/);
  expect(labelOfBucket('2026-11-22T12:00:00.000Z', 10_080)).toMatch(/^2[123] Nov, \d\d:\d\d$/);
});

it('takes only a window that is offered', () => {
  expect([windowOf('15'), windowOf('17'), windowOf('')]).toEqual([15, 60, 60]);
  expect(nameOfWindow(10_080)).toBe('7 d');
});
