import { retryAfterMs } from './retry-after.ts';

const now = Date.parse('2026-11-22T10:00:00Z');
const ask = (headers: Record<string, string>, byLimits = true) => retryAfterMs(headers, { now, byLimits });

describe('how long a provider wants to be left alone', () => {
  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': ' 1.5 ' }, 1_500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sun, 22 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '1e9' }, undefined],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'anthropic-ratelimit-tokens-reset': '2026-11-22T10:00:10Z' }, 10_000],
    [{ 'anthropic-ratelimit-tokens-reset': '2026-11-22T10:00:10Z', 'retry-after': '2' }, 2_000],
    [
      {
        'anthropic-ratelimit-tokens-reset': '2026-11-22T10:01:00Z',
        'anthropic-ratelimit-tokens-remaining': '5000',
        'anthropic-ratelimit-requests-reset': '2026-11-22T10:00:05Z',
        'anthropic-ratelimit-requests-remaining': '0',
      },
      5_000,
    ],
  ])('%j → %p', (headers, expected) => {
    expect(ask(headers)).toBe(expected);
  });

  it('looks at limits only where one was passed', () => {
    expect(ask({ 'anthropic-ratelimit-tokens-reset': '2026-11-22T10:00:10Z' }, false)).toBeUndefined();
  });
});
