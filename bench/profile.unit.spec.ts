import type { Profiler } from 'node:inspector';
import { formatSummary, startProfile, summarise } from './profile.ts';

const node = (id: number, functionName: string, url = '', children: number[] = []) => ({
  id,
  children,
  callFrame: { functionName, url, lineNumber: 9, scriptId: '', columnNumber: 0 },
});

const profile: Profiler.Profile = {
  nodes: [
    node(1, '(idle)'),
    node(2, '(garbage collector)'),
    node(3, 'query', 'file:///srv/spool/node_modules/pg/lib/client.js'),
    node(4, 'handle', 'file:///srv/spool/dist/libs/event-store/handle-commands.js', [3, 5]),
    node(5, 'handle', 'file:///srv/spool/dist/libs/event-store/handle-commands.js'),
    node(6, '', 'file:///srv/spool/node_modules/@nestjs/core/router/router.js'),
    node(7, 'writev', 'node:internal/streams/writable'),
    node(8, 'loop', 'file:///srv/spool/dist/bench/measure.js'),
  ],
  startTime: 0,
  endTime: 0,
  samples: [1, 2, 3, 4, 5, 6, 7, 8],
  timeDeltas: [200, 50, 200, 150, 150, 100, 100, 50],
};

test('shares are self time of the time that was not idle', () => {
  const { busy, functions, parts } = summarise(profile);
  expect(busy).toBeCloseTo(0.8);
  expect(functions[0]).toEqual({ name: 'handle libs/event-store/handle-commands.js:10', share: 0.375 });
  expect(functions.map(({ name }) => name)).toContain('(anonymous) @nestjs/core/router/router.js:10');
  expect(parts).toEqual([
    { name: 'libs/event-store', share: 0.375 },
    { name: 'pg', share: 0.25 },
    { name: '@nestjs/core', share: 0.125 },
    { name: 'node:internal', share: 0.125 },
    { name: '(garbage collector)', share: 0.0625 },
    { name: 'bench', share: 0.0625 },
  ]);
});

test('time of our own functions counts what they call, and recursion once', () => {
  expect(summarise(profile).own).toEqual([{ name: 'handle libs/event-store/handle-commands.js:10', share: 0.625 }]);
});

test('a profile of this process finds what kept it busy', async () => {
  const stop = await startProfile();
  const end = performance.now() + 100;
  while (performance.now() < end) JSON.stringify({ spin: [1, 2, 3] });
  expect(formatSummary('here', summarise(await stop()))).toMatch(/^here: busy \d+ % of the time/);
});
