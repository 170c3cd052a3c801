import { openStepAfter, type Command } from './commands.ts';
import { command, event, given, happened, LIMITS, NOW, stateAfter, threadAfter, THEN } from './decider.testing.ts';
import type { ThreadEvent } from './events.ts';
import { runError } from './run-errors.ts';

const { created, message, queued, claimed, started, waiting, decided, resumed, requeued, said, entered } = happened;
const { failed, expired } = happened;

const QUEUED = [created(), message('A'), queued('A'), entered('RUNNING', 'A')];
const RUNNING = [...QUEUED, claimed('A'), started('A')];
const RESCHEDULING = entered('RESCHEDULING', 'A');
/** RESCHEDULING with the time of the next attempt, milliseconds after THEN. */
const rescheduledAt = (ms: number) =>
  event(
    'thread.status_entered',
    { status: 'RESCHEDULING', retryAt: new Date(Date.parse(THEN) + ms).toISOString() },
    'A',
  );
const OUTAGE = { of: 'provider' as const, since: NOW, failures: 1 };
/** Claimed twice, so that attempt 1 and dispatch 1 are old. */
const TWICE = [...RUNNING, requeued('A'), RESCHEDULING, claimed('A', 2), entered('RUNNING', 'A')];
const TWICE_RUNNING = [...TWICE, started('A', 2)];
const TOOL_DONE = {
  toolCallId: 'T',
  toolName: 't',
  outcome: 'error' as const,
  summary: '',
  result: '',
  durationMs: null,
};

describe('a claim', () => {
  test('raises the attempt by one for any dispatch', () => {
    const asked = [...RUNNING, waiting('A', ['Q']), decided('A', 'Q'), resumed('A', 2)];
    given(...QUEUED)
      .when(command.claim('A'))
      .then(claimed('A', 1, 1));
    given(...asked)
      .when(command.claim('A', 2))
      .then(claimed('A', 2, 2));
  });

  test('is accepted after any number of attempts', () => {
    const handedOver = Array.from({ length: 500 }, (_, i) => [
      claimed('A', i + 1),
      requeued('A', { dispatch: i + 2, reason: 'handed_over', losses: 0 }, i + 1),
    ]).flat();
    given(...QUEUED, ...handedOver, RESCHEDULING)
      .when(command.claim('A', 501))
      .then(claimed('A', 501), entered('RUNNING', 'A'));
  });
});

describe('every command of an old dispatch or attempt is rejected', () => {
  const retryable = runError('provider_unavailable');
  const stale: [string, ThreadEvent[], Command][] = [
    ['start', TWICE, command.start('A')],
    ['record', TWICE_RUNNING, command.say('A')],
    ['wait', TWICE_RUNNING, command.wait('A', ['Q'])],
    ['complete', TWICE_RUNNING, command.complete('A')],
    ['fail', TWICE_RUNNING, command.fail('A', runError('internal'))],
    ['fail, retryable', TWICE_RUNNING, command.fail('A', retryable)],
    ['hand over', TWICE_RUNNING, command.handOver('A')],
    ['reclaim', TWICE_RUNNING, command.reclaim('A')],
    ['expire', TWICE_RUNNING, command.expire('A', 'work', { dispatch: 2 })],
  ];

  test.each(stale)('%s', (_name, events, asked) => {
    given(...events)
      .when(asked)
      .thenRejected('stale_attempt');
    // The same command under the current attempt is accepted.
    expect(
      given(...events)
        .when({ ...asked, attempt: 2 } as Command)
        .outcome(),
    ).toMatch(/^[^!]/);
  });

  test.each(stale)('%s, by an attempt that does not exist yet', (_name, events, asked) => {
    given(...events)
      .when({ ...asked, attempt: 3 } as Command)
      .thenRejected('stale_attempt');
  });

  test.each(stale)('%s, for another Run', (_name, events, asked) => {
    const unknown = ['reclaim_run', 'expire_run'].includes(asked.type) ? 'run_not_live' : 'stale_attempt';
    given(...events)
      .when({ ...asked, runId: 'B', attempt: 2 } as Command)
      .thenRejected(unknown);
  });

  test.each([0, 1, 3])('claim of dispatch %d while it is 2', (dispatch) => {
    given(...RUNNING, requeued('A'))
      .when(command.claim('A', dispatch))
      .thenRejected('stale_dispatch');
  });

  test('a late worker cannot write to a Run that waits or was handed back', () => {
    given(...RUNNING, waiting('A', ['Q']))
      .when(command.say('A'))
      .thenRejected('stale_attempt');
    given(...RUNNING, requeued('A'))
      .when(command.complete('A'))
      .thenRejected('stale_attempt');
  });
});

describe('a record', () => {
  test('is stored unchanged under the claim', () => {
    const tool = { toolCallId: 'T', toolName: 'look', title: 'Look', toolInput: { at: [1] } };
    const usage = { inputTokens: 1, outputTokens: 2 };
    const facts = [
      { type: 'tool.started' as const, data: tool },
      { type: 'usage.recorded' as const, data: usage },
    ];
    given(...TWICE_RUNNING)
      .when({ type: 'record', runId: 'A', attempt: 2, facts })
      .then(event('tool.started', tool, 'A', 2), event('usage.recorded', usage, 'A', 2));
  });

  test('a Run starts once, and its time counts from then', () => {
    given(...TWICE)
      .when(command.start('A', 2))
      .then(event('run.started', { first: false }, 'A', 2));
    const notStarted = [...QUEUED, claimed('A'), requeued('A'), claimed('A', 2)];
    given(...notStarted)
      .when(command.start('A', 2))
      .then(event('run.started', { first: true }, 'A', 2));
    const late = stateAfter([started('A', 2)], threadAfter(...TWICE), NOW);
    expect(late).toMatchObject({ runs: [{ startedAt: THEN }] });
  });

  test('the commit that completes a Run stores its final output', () => {
    const finalOutput = { text: 'done', warnings: [] };
    given(...RUNNING)
      .when({ type: 'complete_run', runId: 'A', attempt: 1, finalOutput })
      .then(event('run.completed', { finalOutput, durationMs: 60_000 }, 'A', 1), entered('IDLE', 'A'));
  });
});

describe('losses', () => {
  const lostOnce = [...RUNNING, requeued('A', { losses: 1 }), claimed('A', 2), started('A', 2)];
  const lostTwice = [...lostOnce, requeued('A', { dispatch: 3, losses: 2 }, 2), claimed('A', 3), started('A', 3)];
  const busy = runError('provider_rate_limited');

  test('the Run of a lost worker is requeued immediately', () => {
    given(...RUNNING)
      .when(command.reclaim('A'))
      .then(requeued('A', { losses: 1 }), RESCHEDULING);
  });

  test('a Run with a retryable failure is requeued with a delay, and the log says when it is tried again', () => {
    const failed = { dispatch: 3, reason: 'retryable_failure', losses: 1, delayMs: 1_000, streak: OUTAGE } as const;
    given(...lostOnce, entered('RUNNING', 'A'))
      .when(command.fail('A', busy, 2))
      .then(requeued('A', failed, 2), rescheduledAt(61_000));
  });

  test('failures are counted apart from losses: by claims, lost workers and hand-overs', () => {
    const failed = requeued('A', { reason: 'retryable_failure', losses: 0, delayMs: 1_000, streak: OUTAGE });
    const again = [...RUNNING, failed, entered('RESCHEDULING', 'A')];
    given(...again)
      .when(command.claim('A', 2))
      .then(event('run.claimed', { dispatch: 2, holder: 'worker', streak: OUTAGE }, 'A', 2), entered('RUNNING', 'A'));
    const claimedAgain = [...again, event('run.claimed', { dispatch: 2, holder: 'worker', streak: OUTAGE }, 'A', 2)];
    given(...claimedAgain)
      .when(command.reclaim('A', 2))
      .then(requeued('A', { dispatch: 3, losses: 1, streak: OUTAGE }, 2));
    given(...claimedAgain)
      .when(command.handOver('A', 2))
      .then(requeued('A', { dispatch: 3, reason: 'handed_over', losses: 0, streak: OUTAGE }, 2));
    const second = { ...OUTAGE, failures: 2 };
    given(...claimedAgain)
      .when(command.fail('A', busy, 2))
      .then(requeued('A', { dispatch: 3, reason: 'retryable_failure', losses: 0, delayMs: 2_000, streak: second }, 2));
    // A claim of a release that does not know the count drops it.
    const dropped = [...again, claimed('A', 2), started('A', 2)];
    given(...dropped)
      .when(command.reclaim('A', 2))
      .then(requeued('A', { dispatch: 3, losses: 1 }, 2));
    given(...claimedAgain, started('A', 2), said('A', 2))
      .when(command.reclaim('A', 2))
      .then(requeued('A', { dispatch: 3, losses: 1 }, 2));
  });

  test('the cause is stored with the requeue, and with the end of the Run', () => {
    const cause = { source: 'worker', name: 'w-1' } as const;
    given(...RUNNING)
      .when({ ...command.reclaim('A'), cause } as Command)
      .then(requeued('A', { losses: 1, cause }), RESCHEDULING);
    const refused = runError('provider_auth');
    given(...lostTwice)
      .when({ ...command.fail('A', refused, 3), cause } as Command)
      .then(event('run.failed', { error: refused, durationMs: 60_000, cause }, 'A', 3), entered('IDLE', 'A'));
  });

  test('the third loss fails the Run', () => {
    given(...lostTwice)
      .when(command.reclaim('A', 3))
      .then(failed('A', runError('worker_lost'), 60_000, 3), entered('IDLE', 'A'));
  });

  test('the agent limits their number', () => {
    const once = [created(), queued('A', { limits: { ...LIMITS, maxLosses: 1 } }), claimed('A')];
    expect(
      given(...once)
        .when(command.reclaim('A'))
        .outcome(),
    ).toBe('failed');
  });

  test.each([
    ['a message', said('A', 2)],
    ['a tool’s result', event('tool.completed', TOOL_DONE, 'A', 2)],
  ])('are reset by %s', (_step, step) => {
    given(...lostOnce, step)
      .when(command.reclaim('A', 2))
      .then(requeued('A', { dispatch: 3, losses: 1 }, 2), RESCHEDULING);
  });

  test.each([
    ['a text delta', event('assistant.text_added', { text: 'x' }, 'A', 2)],
    [
      'the start of a tool',
      event('tool.started', { toolCallId: 'T', toolName: 't', title: 't', toolInput: {} }, 'A', 2),
    ],
    ['another Run’s message', said('B', 2)],
  ])('are not reset by %s', (_what, fact) => {
    given(...lostOnce, fact)
      .when(command.reclaim('A', 2))
      .then(requeued('A', { dispatch: 3, losses: 2 }, 2), RESCHEDULING);
  });

  test('a hand-over is not a loss', () => {
    given(...lostOnce, entered('RUNNING', 'A'))
      .when(command.handOver('A', 2))
      .then(requeued('A', { dispatch: 3, reason: 'handed_over', losses: 1 }, 2), RESCHEDULING);
    given(...lostOnce, entered('RUNNING', 'A'))
      .when(command.handOver('A', 2, { delayMs: 700 }))
      .then(requeued('A', { dispatch: 3, reason: 'handed_over', losses: 1, delayMs: 700 }, 2), rescheduledAt(60_700));
  });

  test('a decision is not a loss, and does not reset them', () => {
    const asked = [...lostTwice, waiting('A', ['Q'], 3), decided('A', 'Q'), resumed('A', 4), claimed('A', 4)];
    expect(
      given(...asked)
        .when(command.reclaim('A', 4))
        .outcome(),
    ).toBe('failed IDLE');
  });

  test('a failure that is not retryable fails the Run immediately', () => {
    const error = runError('context_too_long');
    given(...QUEUED, claimed('A'))
      .when(command.fail('A', error))
      .then(failed('A', error), entered('IDLE', 'A'));
  });
});

describe('the step that a requeue voids', () => {
  const requeues = (openStep?: number): Command[] =>
    [command.reclaim('A'), command.fail('A', runError('provider_unavailable')), command.handOver('A')].map(
      (requeue) => ({ ...requeue, openStep }) as Command,
    );
  const statuses = (events: ThreadEvent[], asked: Command) => {
    const { events: decided } = given(...events)
      .when(asked)
      .decision();
    return decided.flatMap((each) => {
      if (each.type !== 'thread.status_entered') return [];
      const { retryAt: _, ...data } = each.data;
      return [data];
    });
  };

  test('is named when the worker is lost, fails or hands over', () => {
    for (const asked of requeues(2))
      expect(statuses(RUNNING, asked)).toEqual([{ status: 'RESCHEDULING', voidedStepId: 'A-1-2' }]);
  });

  test('is not named if no step is open, or if the Run ends', () => {
    for (const asked of requeues()) expect(statuses(RUNNING, asked)).toEqual([{ status: 'RESCHEDULING' }]);
    const final = { ...command.fail('A', runError('context_too_long')), openStep: 2 } as Command;
    expect(statuses(RUNNING, final)).toEqual([{ status: 'IDLE' }]);
  });
});

describe('openStepAfter', () => {
  const delta = (step?: number) => event('assistant.text_added', { text: 'x', ...(step && { step }) }, 'A', 1);

  test('is the step of the last delta until its message is stored', () => {
    expect(openStepAfter([delta(1)])).toBe(1);
    expect(openStepAfter([delta(1), said('A'), delta(2)])).toBe(2);
    expect(openStepAfter([], 3)).toBe(3);
    expect(openStepAfter([said('A')], 3)).toBeUndefined();
    expect(openStepAfter([delta()], 3)).toBeUndefined();
  });
});

describe('time limits', () => {
  test('end the Run without a claim', () => {
    given(...RUNNING)
      .when(command.expire('A', 'work'))
      .then(expired('A', 'work', 60_000), entered('IDLE', 'A'));
  });

  test('a limit that was due before the Run moved is rejected', () => {
    const again = [...RUNNING, waiting('A', ['Q']), decided('A', 'Q'), resumed('A')];
    given(...again)
      .when(command.expire('A', 'wait'))
      .thenRejected('stale_attempt');
    given(...again)
      .when(command.expire('A', 'queue', { dispatch: 2, attempt: 0 }))
      .thenRejected('stale_attempt');
  });
});
