import { runTimes } from './run-times.ts';

const at = (second: number) => new Date(second * 1_000).toISOString();
const run = { status: 'queued' as const, createdAt: at(0), startedAt: null, completedAt: null };

test.each([
  ['waits and has not started: it waits on', run, { queueMs: 9_000, durationMs: null }],
  [
    'ended without a start: neither is known',
    { ...run, status: 'cancelled' as const, completedAt: at(4) },
    { queueMs: null, durationMs: null },
  ],
  [
    'runs: its duration grows',
    { ...run, status: 'running' as const, startedAt: at(2) },
    { queueMs: 2_000, durationMs: 7_000 },
  ],
  [
    'has ended: both stand',
    { ...run, status: 'completed' as const, startedAt: at(2), completedAt: at(5) },
    { queueMs: 2_000, durationMs: 3_000 },
  ],
  [
    'was started by a clock that is behind: never negative',
    { ...run, status: 'running' as const, startedAt: at(-1) },
    { queueMs: 0, durationMs: 10_000 },
  ],
])('a Run that %s', (_, given, times) => expect(runTimes(given, 9_000)).toEqual(times));
