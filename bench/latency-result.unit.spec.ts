import { summariseLatencies } from './latency-result.ts';

const latency = (what: string, samplesMs: number[], boundMs = 100) => ({
  ...{ what, boundMs, samplesMs },
  tookMs: Math.max(...samplesMs),
});

it('summarises all samples of the rounds; a bound is held if it is held in each, and a failed round gives no result', () => {
  const all = [
    [latency('quick', [10, 20]), latency('slow', [90])],
    [latency('quick', [30, 40]), latency('slow', [110])],
  ];
  expect(summariseLatencies('stop', all)).toEqual([
    { name: 'stop: quick', samples: 4, p50Ms: 20, p99Ms: 40, spread: 20 / 30, boundMs: 100, verdict: 'held' },
    { name: 'stop: slow', samples: 2, p50Ms: 90, p99Ms: 110, spread: 0.2, boundMs: 100, verdict: 'missed' },
  ]);
  const oneFailed = summariseLatencies('stop', [...all, []]);
  expect(oneFailed.map(({ verdict }) => verdict)).toEqual(['no result', 'no result']);
  expect(summariseLatencies('stop', [[], []])).toMatchObject([{ name: 'stop', samples: 0, verdict: 'no result' }]);
});
