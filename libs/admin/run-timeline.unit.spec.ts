import { runError } from '#domain';
import { asked, at, done, RUN, said, started, Story, text, used } from './run-story.testing.ts';

test('shows the queue, then one model step from the claim to its message', () => {
  const story = new Story().claim(40).record(100, text()).record(150, text());
  story.ends(300, [text(), said(), used(10, 5)], 'complete');
  expect(story.spans()).toEqual([
    ['queue', null, 0, 40, 'ok'],
    ['model', 1, 40, 300, 'ok'],
  ]);
  const { spans, agentVersion } = story.timeline();
  expect(agentVersion).toBe(7);
  expect(spans[1]).toMatchObject({ name: 'm', holder: 'worker-1', firstTextAt: at(100), inputTokens: 10 });
});

test('shows a slow boot as its own span, after which the model step begins', () => {
  const story = new Story().boot(40).start(3_060).record(3_500, text());
  story.ends(4_000, [text(), said(), used(10, 5)], 'complete');
  expect(story.spans()).toEqual([
    ['queue', null, 0, 40, 'ok'],
    ['boot', 1, 40, 3_060, 'ok'],
    ['model', 1, 3_060, 4_000, 'ok'],
  ]);
  expect(story.timeline().spans[2]?.firstTextAt).toBe(at(3_500));
});

test('shows a boot in progress without an end', () => {
  expect(new Story().boot(40).spans().at(-1)).toEqual(['boot', 1, 40, null, null]);
});

test.each([
  ['fails', (story: Story) => story.bootEnds(90, 'fail'), ['boot', 1, 40, 90, 'error']],
  ['fails with a retry', (story: Story) => story.bootEnds(90, 'fail', true), ['boot', 1, 40, 90, 'error']],
  ['is handed over', (story: Story) => story.bootEnds(90, 'hand_over'), ['boot', 1, 40, 90, 'cut']],
  ['loses its worker', (story: Story) => story.lose(90), ['boot', 1, 40, 90, 'cut']],
  [
    'is cancelled',
    (story: Story) => story.at(90, { type: 'interrupt', runId: RUN, by: null }),
    ['boot', 1, 40, 90, 'cut'],
  ],
])('shows no model step for a Run that %s during its boot', (_, ends, last) => {
  const spans = ends(new Story().boot(40)).spans();
  expect(spans[1]).toEqual(last);
  expect(spans.map(([kind]) => kind)).not.toContain('model');
});

test('attributes the failure of an immediately failing first step to the step, not the boot', () => {
  const story = new Story().boot(40).startsAndEnds(90, 'fail');
  expect(story.spans().slice(1)).toEqual([
    ['boot', 1, 40, 90, 'ok'],
    ['model', 1, 90, 90, 'error'],
  ]);
});

test.each([
  [
    'without a start',
    [],
    20,
    [
      ['boot', 1, 40, 70, 'ok'],
      ['model', 1, 70, 90, 'error'],
    ],
  ],
  [
    'with its start',
    [{ type: 'start_run', runId: RUN, attempt: 1 }],
    20,
    [
      ['boot', 1, 40, 70, 'ok'],
      ['model', 1, 70, 90, 'error'],
    ],
  ],
  ['not if it was not called', [], undefined, [['boot', 1, 40, 90, 'error']]],
  ['after a wait as long as the boot', [], 60, [['model', 1, 40, 90, 'error']]],
] as const)('shows a provider that fails soon as a model step: %s', (_, start, waitedMs, shown) => {
  const cause = { source: 'provider', name: 'api.example', status: 503, waitedMs } as const;
  const error = runError('provider_rejected');
  const story = new Story().boot(40);
  story.at(90, ...start, { type: 'fail_run', runId: RUN, attempt: 1, error, cause, jitter: 1 });
  expect(story.spans().slice(1)).toEqual(shown);
  expect(story.timeline().spans.at(-1)?.cause?.summary).toBe('HTTP 503 from api.example');
});

test('shows no model step for a Run that completes right after its boot', () => {
  const story = new Story().boot(40).startsAndEnds(90, 'complete');
  expect(story.spans().slice(1)).toEqual([['boot', 1, 40, 90, 'ok']]);
});

test('ends the boot at the start of the Run if a tool runs first', () => {
  const story = new Story().boot(10).start(20, said('a'), asked('a')).ends(50, [], 'ask');
  story.at(80, { type: 'decide_permission', requestId: 'r', decision: 'allow_once', by: 'ann' });
  story.boot(90).start(110, started('a')).record(150, done('a', 40));
  expect(story.spans().slice(5)).toEqual([
    ['boot', 2, 90, 110, 'ok'],
    ['tool', 2, 110, 150, 'ok'],
    ['model', 2, 150, null, null],
  ]);
});

test('begins the span of a repeated tool call at the second start of the Run', () => {
  const story = new Story().boot(10).start(20, said('a'), started('a')).lose(100);
  story.boot(120).start(180).record(300, done('a', 140));
  expect(story.spans().slice(5)).toEqual([
    ['boot', 2, 120, 180, 'ok'],
    ['tool', 2, 180, 300, 'ok'],
    ['model', 2, 300, null, null],
  ]);
});

test('shows one boot for a Run that continues the calls of the previous Run', () => {
  const story = new Story().boot(10).start(40, started('a')).record(50, done('a', 9));
  expect(story.spans().slice(1)).toEqual([
    ['boot', 1, 10, 40, 'ok'],
    ['tool', 1, 40, 50, 'ok'],
    ['model', 1, 50, null, null],
  ]);
});

test('shows overlapping tool calls with their titles between two model steps', () => {
  const story = new Story().claim(10).record(100, said('a', 'b'), used(1, 1), started('a'), started('b'));
  story
    .record(150, done('b', 49))
    .record(200, done('a', 99))
    .ends(260, [said(), used(1, 1)], 'complete');
  expect(story.spans().slice(1)).toEqual([
    ['model', 1, 10, 100, 'ok'],
    ['tool', 1, 100, 200, 'ok'],
    ['tool', 1, 100, 150, 'ok'],
    // Begins after the last result.
    ['model', 1, 200, 260, 'ok'],
  ]);
  expect(story.timeline().spans.map(({ name, toolCallId }) => [name, toolCallId])).toContainEqual(['Tool b', 'b']);
});

test('shows the wait for a confirmation, then the queue and a second boot before the tool', () => {
  const story = new Story().claim(10).ends(50, [said('a'), used(1, 1), asked('a')], 'ask');
  expect(story.spans().at(-1)).toEqual(['waiting', null, 50, null, null]);
  expect(story.timeline().spans.at(-1)?.name).toBe('Waiting for a person: Tool a');
  story.at(80, { type: 'decide_permission', requestId: 'r', decision: 'allow_once', by: 'ann' });
  story
    .claim(90)
    .record(110, started('a'))
    .record(150, done('a', 40))
    .ends(170, [said(), used(1, 1)], 'complete');
  expect(story.spans().slice(2)).toEqual([
    ['waiting', null, 50, 80, 'ok'],
    ['queue', null, 80, 90, 'ok'],
    ['boot', 2, 90, 110, 'ok'],
    ['tool', 2, 110, 150, 'ok'],
    ['model', 2, 150, 170, 'ok'],
  ]);
});

test('shows a refused call with no duration', () => {
  const story = new Story().claim(10).ends(50, [said('a'), asked('a')], 'ask');
  story.at(80, { type: 'decide_permission', requestId: 'r', decision: 'reject_once', by: 'ann' });
  story.claim(90).record(110, done('a', null, 'refused'));
  expect(story.spans().slice(4)).toEqual([
    ['boot', 2, 90, 110, 'ok'],
    ['tool', 2, 110, 110, 'refused'],
    ['model', 2, 110, null, null],
  ]);
});

test('cuts open spans when a worker is lost, and shows the repeated call again', () => {
  const story = new Story().claim(10).record(50, said('a', 'b'), started('a'), started('b')).record(60, done('b', 9));
  story.lose(100).claim(120).record(200, done('a', 30));
  expect(story.spans().slice(2)).toEqual([
    ['tool', 1, 50, 100, 'cut'],
    ['tool', 1, 50, 60, 'ok'],
    ['queue', null, 100, 120, 'ok'],
    ['boot', 2, 120, 170, 'ok'],
    ['tool', 2, 170, 200, 'ok'],
    ['model', 2, 200, null, null],
  ]);
  expect(story.timeline().losses).toBe(1);
});

test('shows an unrepeatable call as unknown after its worker was lost', () => {
  const story = new Story().claim(10).record(50, said('a'), started('a')).lose(100).claim(120);
  story.record(140, done('a', null, 'unknown'));
  expect(story.spans().slice(2, -1)).toEqual([
    ['tool', 1, 50, 100, 'cut'],
    ['queue', null, 100, 120, 'ok'],
    ['boot', 2, 120, 140, 'ok'],
    ['tool', 2, 140, 140, 'unknown'],
  ]);
});

test('shows a delay, the queue and another step after a retryable failure', () => {
  const story = new Story().claim(10).ends(50, [text()], 'fail', true);
  expect(story.spans({ now: at(500) }).slice(1)).toEqual([
    ['model', 1, 10, 50, 'error'],
    ['delay', null, 50, null, null],
  ]);
  expect(story.spans({ now: at(1_200) }).slice(2)).toEqual([
    ['delay', null, 50, 1_050, 'ok'],
    ['queue', null, 1_050, null, null],
  ]);
  story.claim(1_100).ends(1_200, [said()], 'complete');
  expect(story.spans().slice(2)).toEqual([
    ['delay', null, 50, 1_050, 'ok'],
    ['queue', null, 1_050, 1_100, 'ok'],
    ['model', 2, 1_100, 1_200, 'ok'],
  ]);
  expect(story.timeline().losses).toBe(0);
});

test('cuts all of several open calls when the Run fails', () => {
  const story = new Story().claim(10).record(20, said('a', 'b'), started('a'), started('b')).ends(50, [], 'fail');
  expect(story.spans().slice(2)).toEqual([
    ['tool', 1, 20, 50, 'cut'],
    ['tool', 1, 20, 50, 'cut'],
  ]);
});

test('shows no new step for a Run that is handed over after a result', () => {
  const story = new Story()
    .claim(10)
    .record(20, said('a'), started('a'))
    .ends(50, [done('a', 29)], 'hand_over');
  expect(story.spans()).toEqual([
    ['queue', null, 0, 10, 'ok'],
    ['model', 1, 10, 20, 'ok'],
    ['tool', 1, 20, 50, 'ok'],
    ['queue', null, 50, null, null],
  ]);
  expect(story.timeline().losses).toBe(0);
});

test.each([
  ['in the queue', (story: Story) => story, ['queue', null, 0, 500, 'cut']],
  ['during a step', (story: Story) => story.claim(10), ['model', 1, 10, 500, 'cut']],
  ['while delayed', (story: Story) => story.claim(10).ends(50, [], 'fail', true), ['delay', null, 50, 500, 'cut']],
  [
    'while it waits for a person',
    (story: Story) => story.claim(10).ends(50, [said('a'), asked('a')], 'ask'),
    ['waiting', null, 50, 500, 'cut'],
  ],
])('ends the last span of a Run that is cancelled %s', (_, until, last) => {
  const story = until(new Story()).at(500, { type: 'interrupt', runId: RUN, by: null });
  expect(story.spans().at(-1)).toEqual(last);
  expect(story.spans({ now: at(2_000) })).toEqual(story.spans());
});

test('cuts the last span of a Run that expires in the queue or loses its last worker', () => {
  const expired = new Story().at(900, { type: 'expire_run', runId: RUN, limit: 'queue', dispatch: 1, attempt: 0 });
  expect(expired.spans()).toEqual([['queue', null, 0, 900, 'cut']]);
  const lost = new Story().claim(10).lose(20).claim(30).lose(40).claim(50).lose(60);
  expect(lost.spans().at(-1)).toEqual(['model', 3, 50, 60, 'cut']);
  expect(lost.timeline().losses).toBe(3);
});

test('ends the delay of an interrupting Run when it is claimed', () => {
  const story = new Story().claim(10).interruptedBy('02RUN', 100);
  expect(story.spans({ now: at(150) })).toEqual([['delay', null, 100, null, null]]);
  story.claim(180);
  expect(story.spans().slice(0, 2)).toEqual([
    ['delay', null, 100, 180, 'ok'],
    ['model', 1, 180, null, null],
  ]);
});

test('shows a boot and no model step for a Run that continues several calls of the previous Run', () => {
  const story = new Story().claim(10).record(40, started('a'), started('b')).record(50, done('a', 9));
  expect(story.spans().slice(1)).toEqual([
    ['boot', 1, 10, 40, 'ok'],
    ['tool', 1, 40, 50, 'ok'],
    ['tool', 1, 40, null, null],
  ]);
});

test.each([
  ['in the queue', (story: Story) => story, [['queue', null, 0, 900, 'unknown']]],
  ['during a step', (story: Story) => story.claim(10).record(50, text()), [['model', 1, 10, 900, 'unknown']]],
  [
    'during two calls',
    (story: Story) => story.claim(10).record(50, said('a', 'b'), started('a'), started('b')),
    ['a', 'b'].map(() => ['tool', 1, 50, 900, 'unknown']),
  ],
  [
    'while delayed',
    (story: Story) => story.claim(10).ends(50, [], 'fail', true),
    [['delay', null, 50, 900, 'unknown']],
  ],
])('ends the open spans of an ended Run whose events stop %s', (_, until, last) => {
  expect(
    until(new Story())
      .spans({ endedAt: at(900) })
      .slice(-last.length),
  ).toEqual(last);
});

test('adds up the tokens of all steps and their cost', () => {
  const story = new Story().claim(10).record(20, said('a'), used(1_000, 10, 400), started('a'));
  story.record(30, done('a', 9)).ends(40, [said(), used(2_000, 20)], 'complete');
  const prices = { input: 3, output: 15, cachedInput: 0.3 };
  const { usage, spans } = story.timeline({ pricesOf: () => prices });
  expect(usage).toEqual({
    inputTokens: 3_000,
    outputTokens: 30,
    cachedInputTokens: 400,
    cost: expect.closeTo((600 * 3 + 400 * 0.3 + 2_000 * 3 + 30 * 15) / 1e6, 12) as number,
  });
  expect(story.timeline().usage.cost).toBeNull();
  expect(spans.filter(({ kind }) => kind === 'model').map(({ outputTokens }) => outputTokens)).toEqual([10, 20]);
  const unused = new Story().claim(10).timeline({ pricesOf: () => prices });
  expect(unused.usage).toEqual({ inputTokens: 0, outputTokens: 0, cachedInputTokens: null, cost: 0 });
});

test('the span that failed has the cause', () => {
  const cause = { source: 'provider', name: 'api.example', status: 503 } as const;
  const refused = { source: 'tool_server', name: 'files', exitCode: 1 } as const;
  const failed = { ...done('a', 5), data: { ...done('a', 5).data, cause: refused } };
  const story = new Story().claim(10).record(20, said('a')).record(30, started('a')).record(40, failed);
  const error = runError('provider_unavailable');
  story.at(50, { type: 'fail_run', runId: RUN, attempt: 1, error, cause, jitter: 1 });
  expect(story.timeline().spans.map(({ kind, cause: of }) => [kind, of?.summary])).toEqual([
    ['queue', undefined],
    ['model', undefined],
    ['tool', 'tool server files: exit status 1'],
    ['model', 'HTTP 503 from api.example'],
    ['delay', undefined],
    ['queue', undefined],
  ]);
});

test('names the stored events with the input and the output of each span', () => {
  const story = new Story().claim(10).record(20, said('a', 'b'), started('a'), asked('b')).record(30, done('a', 9));
  story.record(40, done('b', null, 'refused')).ends(50, [said()], 'complete');
  const typesOf = Object.fromEntries(story.events.map(({ version, type }) => [version, type]));
  const { spans } = story.timeline();
  const shown = spans.filter(({ kind }) => kind !== 'queue' && kind !== 'boot');
  expect(
    shown.map(({ name, inputVersion, outputVersion }) => [name, typesOf[inputVersion!], typesOf[outputVersion!]]),
  ).toEqual([
    ['m', undefined, 'assistant.message_added'],
    ['Tool a', 'tool.started', 'tool.completed'],
    ['Tool b', 'assistant.message_added', 'tool.completed'],
    ['m', undefined, 'assistant.message_added'],
  ]);
});
