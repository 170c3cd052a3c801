import { costOf } from './cost.ts';

const M = 1_000_000;

it.each([
  ['input and output, each at its price', { inputTokens: M, outputTokens: 2 * M }, 2 + 2 * 8],
  ['cached input at its own price', { inputTokens: 3 * M, outputTokens: 0, cachedInputTokens: M }, 2 * 2 + 0.5],
  ['input that is all cached', { inputTokens: M, outputTokens: 0, cachedInputTokens: M }, 0.5],
  [
    'more in the cache than there was input: never less than nothing',
    { inputTokens: 0, outputTokens: 0, cachedInputTokens: M },
    0.5,
  ],
])('counts %s', (_what, usage, cost) => {
  expect(costOf(usage, { input: 2, output: 8, cachedInput: 0.5 })).toBeCloseTo(cost, 12);
});

it('counts cached input like other input where it has no price of its own', () => {
  expect(costOf({ inputTokens: M, outputTokens: 0, cachedInputTokens: M }, { input: 2, output: 8 })).toBeCloseTo(2, 12);
});
