import type { TimelineSpan } from '#contract';
import { attemptsOf } from './attempts.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();

function span(
  kind: TimelineSpan['kind'],
  attempt: number | null,
  from: number,
  to: number | null,
  more = {},
): TimelineSpan {
  return {
    ...{ kind, attempt, name: kind, holder: attempt === null ? null : `worker-${attempt}` },
    ...{ startedAt: at(from), endedAt: to === null ? null : at(to), outcome: to === null ? null : 'ok' },
    ...{ firstTextAt: null, toolCallId: null, inputTokens: null, outputTokens: null, ...more },
  };
}

const cause = { summary: 'HTTP 503 from api.example', source: 'provider', name: 'api.example', status: 503 } as const;

test('sums up the spans of each attempt without the waits between them', () => {
  const attempts = attemptsOf([
    span('queue', null, 0, 1),
    span('boot', 1, 1, 2),
    span('model', 1, 2, 4, { inputTokens: 10, outputTokens: 2 }),
    span('tool', 1, 4, 9),
    span('tool', 1, 4, 6, { outcome: 'refused' }),
    span('model', 1, 9, 12, { inputTokens: 20, outputTokens: 3 }),
    span('model', 1, 12, 13, { outcome: 'error', cause }),
    span('delay', null, 13, 20),
    span('model', 2, 20, null),
  ]);
  expect(attempts).toEqual([
    {
      ...{ attempt: 1, holder: 'worker-1', startedAt: at(1), endedAt: at(13), outcome: 'error', cause },
      ...{ modelSteps: 3, toolCalls: 2, inputTokens: 30, outputTokens: 5 },
    },
    {
      ...{ attempt: 2, holder: 'worker-2', startedAt: at(20), endedAt: null, outcome: null, cause: null },
      ...{ modelSteps: 1, toolCalls: 0, inputTokens: null, outputTokens: null },
    },
  ]);
});

test('an attempt has the outcome of the span that ends last, and no outcome while a span is active', () => {
  const tools = [span('tool', 1, 0, 9, { outcome: 'cut' }), span('tool', 1, 0, 5)];
  expect(attemptsOf(tools)).toMatchObject([{ endedAt: at(9), outcome: 'cut' }]);
  const ended = [span('tool', 1, 0, 5, { cause })];
  expect(attemptsOf(ended)).toMatchObject([{ outcome: 'error', cause }]);
  expect(attemptsOf([span('tool', 1, 0, null), span('tool', 1, 0, 5)])).toMatchObject([
    { endedAt: null, outcome: null },
  ]);
});
