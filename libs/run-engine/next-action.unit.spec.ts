import { NOTHING_EARLIER, nextAction, type NextAction, type Rules } from './next-action.ts';
import { answered, call, completed, decided, said, started, stopped } from './transcript.testing.ts';
import type { TranscriptEvent } from './transcript.ts';

const rules: Rules = {
  runId: 'A',
  limits: { maxSteps: 3 },
  pricesOf: (fallback) => (fallback === 1 ? { input: 2, output: 20 } : { input: 1, output: 10 }),
  earlier: NOTHING_EARLIER,
  inputProblem: ({ invalidInput = null }) => invalidInput,
  tools: new Map([
    ['free', { policy: 'allow', idempotent: false, readOnly: false }],
    ['clock', { policy: 'allow', idempotent: true, readOnly: false }],
    ['look', { policy: 'allow', idempotent: true, readOnly: true }],
    ['ask', { policy: 'ask', idempotent: false, readOnly: false }],
    ['ask to look', { policy: 'ask', idempotent: false, readOnly: true }],
    ['denied', { policy: 'deny', idempotent: false, readOnly: false }],
  ]),
};

const run = (id: string, name = 'free', isStarted = false): NextAction => ({
  kind: 'run_tools',
  calls: [{ call: call(id, name), started: isStarted }],
});
const together = (...ids: string[]): NextAction => ({
  kind: 'run_tools',
  calls: ids.map((id) => ({ call: call(id, 'look'), started: false })),
});
const looks = (...ids: string[]) => ids.map((id) => call(id, 'look'));
const settle = (id: string, name: string, as: 'lost' | 'rejected' | 'denied' | 'missing'): NextAction => ({
  kind: 'settle_tool',
  call: call(id, name),
  as,
});
const modelStep: NextAction = { kind: 'model_step' };

const hello = said('hello');
const free = answered('', [call('1'), call('2')]);
const invalid = (id: string, name: string) => ({ ...call(id, name), invalidInput: 'no JSON' });
const mixed = answered('', [call('1', 'ask'), call('2'), call('3', 'ask')]);

const cases: [string, TranscriptEvent[], NextAction][] = [
  ['no event', [], modelStep],
  ['a message', [hello], modelStep],
  ['a final message', [hello, answered('done')], { kind: 'complete', text: 'done' }],
  ['a later message', [hello, answered('done'), said('more')], modelStep],
  ['calls that need no permission', [hello, free], run('1')],
  ['two calls, the first completed', [hello, free, started('1'), completed('1')], run('2')],
  ['two completed calls', [hello, free, started('1'), completed('1'), started('2'), completed('2')], modelStep],
  ['a call that was started and lost', [hello, free, started('1')], settle('1', 'free', 'lost')],
  ['a lost call with a stored outcome', [hello, free, started('1'), completed('1', { outcome: 'unknown' })], run('2')],
  [
    'an idempotent call that was lost',
    [hello, answered('', [call('1', 'clock')]), started('1', 'clock')],
    run('1', 'clock', true),
  ],
  ['a tool that is denied', [hello, answered('', [call('1', 'denied')])], settle('1', 'denied', 'denied')],
  ['a tool that does not exist', [hello, answered('', [call('1', 'nix')])], settle('1', 'nix', 'missing')],
  [
    'a call that was started, whose tool no longer exists',
    [hello, answered('', [call('1', 'nix')]), started('1', 'nix')],
    settle('1', 'nix', 'lost'),
  ],
  ['calls of which some need permission: the free one first', [hello, mixed], run('2')],
  [
    'only calls that need permission',
    [hello, mixed, started('2'), completed('2')],
    { kind: 'ask', calls: [call('1', 'ask'), call('3', 'ask')] },
  ],
  [
    'a decision that allows a call: it runs',
    [hello, mixed, completed('2'), decided('1', 'allow_once'), decided('3', 'reject_once')],
    run('1', 'ask'),
  ],
  [
    'an allowed and completed call and a rejected one: the rejected one is settled',
    [hello, mixed, completed('2'), decided('1', 'allow_once'), decided('3', 'reject_once'), completed('1')],
    settle('3', 'ask', 'rejected'),
  ],
  [
    'a call that was allowed, started and lost',
    [hello, answered('', [call('1', 'ask')]), decided('1', 'allow_once'), started('1', 'ask')],
    settle('1', 'ask', 'lost'),
  ],
  [
    'a resumed Run: permission is requested again for the undecided call',
    [hello, answered('', [call('1', 'ask'), call('2', 'ask')], 'B'), decided('1', 'allow_once', 'B'), completed('1')],
    { kind: 'ask', calls: [call('2', 'ask')] },
  ],
  [
    'the most allowed steps',
    [hello, ...['1', '2', '3'].flatMap((id) => [answered('', [call(id)]), completed(id)])],
    { kind: 'give_up', code: 'step_limit_reached' },
  ],
  [
    'a final message as the last allowed step',
    [hello, answered('', [call('1')]), completed('1'), answered('', [call('2')]), completed('2'), answered('done')],
    { kind: 'complete', text: 'done' },
  ],
  [
    'a call of the last allowed step: it still runs',
    [hello, ...['1', '2'].flatMap((id) => [answered('', [call(id)]), completed(id)]), answered('', [call('3')])],
    run('3'),
  ],
  [
    'steps of another Run, which do not count',
    [hello, ...['1', '2', '3'].flatMap((id) => [answered('', [call(id)], 'B'), completed(id)])],
    modelStep,
  ],
  ['a stopped message', [hello, stopped('half')], modelStep],
  [
    'a stopped message after completed calls',
    [hello, answered('', [call('1')]), completed('1'), stopped('half')],
    modelStep,
  ],
  ['calls that only read: together', [hello, answered('', looks('1', '2', '3'))], together('1', '2', '3')],
  [
    'a call that changes something between reads: the earlier reads run',
    [hello, answered('', [...looks('1', '2'), call('3'), ...looks('4')])],
    together('1', '2'),
  ],
  [
    'completed reads before a call that changes something: it runs alone',
    [hello, answered('', [...looks('1'), call('2'), ...looks('3')]), completed('1')],
    run('2'),
  ],
  [
    'a denied call between reads: the earlier reads run',
    [hello, answered('', [...looks('1'), call('2', 'denied'), ...looks('3')])],
    together('1'),
  ],
  [
    'a call that needs permission before reads: the reads run',
    [hello, answered('', [call('1', 'ask'), ...looks('2', '3')])],
    together('2', '3'),
  ],
  [
    'nine reads: eight run',
    [hello, answered('', looks('1', '2', '3', '4', '5', '6', '7', '8', '9'))],
    together('1', '2', '3', '4', '5', '6', '7', '8'),
  ],
  [
    'reads of which some were lost: the idempotent ones run with the others',
    [hello, answered('', looks('1', '2', '3')), started('1', 'look'), started('2', 'look'), completed('2')],
    {
      kind: 'run_tools',
      calls: [
        { call: call('1', 'look'), started: true },
        { call: call('3', 'look'), started: false },
      ],
    },
  ],
  [
    'a lost read that is not idempotent',
    [hello, answered('', [call('1', 'ask to look')]), decided('1', 'allow_once'), started('1', 'ask to look')],
    settle('1', 'ask to look', 'lost'),
  ],
  [
    'invalid input of a call that needs permission: none is requested',
    [hello, answered('', [invalid('1', 'ask')])],
    { kind: 'settle_tool', call: invalid('1', 'ask'), as: 'invalid', detail: 'no JSON' },
  ],
  [
    'invalid input of a denied tool',
    [hello, answered('', [invalid('1', 'denied')])],
    { kind: 'settle_tool', call: invalid('1', 'denied'), as: 'denied' },
  ],
];

it.each(cases)('returns the next action after %s', (_what, transcript, action) => {
  expect(nextAction(transcript, rules)).toEqual(action);
});

describe('a budget', () => {
  const used = (inputTokens: number, outputTokens: number, runId = 'A') => {
    const event = answered('', [call('1')], runId);
    return [
      { ...event, data: { ...event.data, usage: { inputTokens, outputTokens } } } as TranscriptEvent,
      completed('1'),
    ];
  };
  const after = (limits: Partial<Rules['limits']>, ...events: TranscriptEvent[]) =>
    nextAction([hello, ...events], { ...rules, limits: { ...rules.limits, ...limits } });

  it.each<[string, TranscriptEvent[], NextAction]>([
    ['one token below', used(60, 39), { ...modelStep, tokensLeft: 1 }],
    ['all of it', used(60, 40), { kind: 'give_up', code: 'token_limit_reached' }],
    ['more, over several steps', [...used(60, 10), ...used(60, 10)], { kind: 'give_up', code: 'token_limit_reached' }],
    ['by another Run', used(1_000, 1_000, 'B'), { ...modelStep, tokensLeft: 100 }],
    ['by steps without usage', [answered('', [call('1')]), completed('1')], { ...modelStep, tokensLeft: 100 }],
  ])('of tokens, used: %s', (_what, events, action) => {
    expect(after({ maxTokens: 100 }, ...events)).toEqual(action);
  });

  it('of costs is computed from the prices', () => {
    expect(after({ maxCost: 2 }, ...used(1_000_000, 99_999))).toEqual(modelStep);
    const giveUp = { kind: 'give_up', code: 'cost_limit_reached' };
    expect(after({ maxCost: 2 }, ...used(1_000_000, 100_000))).toEqual(giveUp);
  });

  it('of costs counts each step by the prices of its model', () => {
    const [step, ...results] = used(500_000, 50_000);
    const byFallback = { ...step, data: { ...step!.data, model: { name: 'other', fallback: 1 } } } as TranscriptEvent;
    const giveUp = { kind: 'give_up', code: 'cost_limit_reached' };
    expect(after({ maxCost: 2 }, step!, ...results)).toEqual(modelStep);
    expect(after({ maxCost: 2 }, byFallback, ...results)).toEqual(giveUp);
  });

  it('counts steps that the transcript lacks, of each model', () => {
    const used = { steps: 1, inputTokens: 30, outputTokens: 20, cachedInputTokens: 0 };
    const earlier = [
      { fallback: 0, ...used },
      { fallback: 1, ...used },
    ];
    for (const limits of [{ maxSteps: 2 }, { maxSteps: 9, maxTokens: 100 }, { maxSteps: 9, maxCost: 0.00069 }])
      expect(nextAction([hello], { ...rules, limits, earlier })).toMatchObject({ kind: 'give_up' });
  });

  it('does not block a final message', () => {
    const [step] = used(1_000, 1_000);
    const final = { ...step, data: { ...step!.data, text: 'done', toolCalls: [] } } as TranscriptEvent;
    expect(after({ maxTokens: 1 }, final)).toEqual({ kind: 'complete', text: 'done' });
  });
});
