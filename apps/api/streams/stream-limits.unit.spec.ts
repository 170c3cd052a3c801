import { loadConfig } from '#platform';
import { refuseStream, streamLimits, type PerScope, type StreamScope } from './stream-limits.ts';

const limits = { thread: 2, user: 3, token: 5, organization: 9, process: 10 };
const none = { thread: 0, user: 0, token: 0, organization: 0, process: 0 };

describe('refuseStream', () => {
  test('admits a stream while each count is one below its limit', () => {
    expect(refuseStream({ thread: 1, user: 2, token: 4, organization: 8, process: 9 }, limits)).toBeNull();
  });

  test.each<[StreamScope, number, string, string, string]>([
    ['thread', 429, 'rate_limited', '1', 'The Thread has 2 open streams'],
    ['user', 429, 'rate_limited', '1', 'The user has 3 open streams'],
    ['token', 429, 'rate_limited', '1', 'The token has 5 open streams'],
    ['organization', 429, 'rate_limited', '1', 'The organization has 9 open streams'],
    ['process', 503, 'internal_error', '5', 'This process has 10 open streams'],
  ])('refuses one more when the limit of the %s is reached or passed', (scope, status, code, retryAfter, message) => {
    for (const count of [limits[scope], limits[scope] + 1]) {
      const refusal = refuseStream({ ...none, [scope]: count }, limits);
      expect(refusal).toMatchObject({ status, code, headers: { 'Retry-After': retryAfter } });
      expect(refusal!.message.startsWith(message)).toBe(true);
      expect(refusal!.message.length).toBeLessThan(120);
    }
  });

  test.each<[string, PerScope<number>, string]>([
    ['the Thread before all others', limits, 'The Thread '],
    ['the user before the token', { ...limits, thread: 0 }, 'The user '],
    ['the token before the organization', { ...limits, thread: 0, user: 0 }, 'The token '],
    ['the organization before the process', { ...limits, thread: 0, user: 0, token: 0 }, 'The organization '],
  ])('names %s', (_, open, start) => {
    expect(refuseStream(open, limits)!.message.startsWith(start)).toBe(true);
  });
});

describe('streamLimits', () => {
  test('returns the defaults 20, the limit of the token, 10,800 and 12,000', () => {
    expect(streamLimits(loadConfig({}), { ofToken: 100 })).toEqual({
      thread: 20,
      user: Infinity,
      token: 100,
      organization: 10_800,
      process: 12_000,
    });
  });

  test('leaves each organization at least one stream', () => {
    const env = { STREAMS_PER_PROCESS: '1', STREAMS_PERCENT_PER_ORGANIZATION: '1' };
    expect(streamLimits(loadConfig(env), { ofToken: 1 })).toMatchObject({ organization: 1, process: 1 });
  });
});
