import type { Command } from './commands.ts';
import { command, given, happened, stateAfter, NOW, THEN } from './decider.testing.ts';
import { decide } from './decide.ts';
import type { ThreadEvent } from './events.ts';
import { isRejection } from './rejection.ts';
import { runError } from './run-errors.ts';

const { created, message, queued, claimed, started, waiting, requeued, completed, failed, cancelled, entered } =
  happened;

const QUEUED = [created(), message('A'), queued('A'), entered('RUNNING', 'A')];
const RUNNING = [...QUEUED, claimed('A'), started('A')];
const TWO_RUNS = [...RUNNING, message('B'), queued('B')];

const STATES = {
  none: [],
  idle: [created()],
  queued: QUEUED,
  booting: [...QUEUED, claimed('A')],
  running: RUNNING,
  waiting: [...RUNNING, waiting('A', ['Q'])],
  requeued: [...RUNNING, requeued('A'), entered('RESCHEDULING', 'A')],
  twoRuns: TWO_RUNS,
  followed: [...TWO_RUNS, completed('A'), entered('RESCHEDULING', 'A')],
  failed: [...RUNNING, failed('A', runError('worker_lost')), entered('IDLE', 'A')],
  rejectedByProvider: [...RUNNING, failed('A', runError('provider_rejected')), entered('IDLE', 'A')],
  cancelled: [...QUEUED, cancelled('A'), entered('IDLE', 'A')],
  archived: [created(), happened.archived()],
  terminated: [created(), happened.terminated(), entered('TERMINATED')],
} satisfies Record<string, ThreadEvent[]>;

type StateName = keyof typeof STATES;

/** The result of the command in each state: `!code` for a rejection, `.` for no events, else the events. */
type Outcomes = Partial<Record<StateName, string>> & { otherwise: string };

const NO_THREAD = { none: '!thread_missing' };
const OVER = { ...NO_THREAD, archived: '!thread_archived', terminated: '!thread_terminated' };
const ENDED = ['idle', 'failed', 'rejectedByProvider', 'cancelled'] as const;

function whenEnded(outcome: string): Partial<Record<StateName, string>> {
  return Object.fromEntries(ENDED.map((state) => [state, outcome]));
}

const started1 = whenEnded('message.added queued RUNNING');
const REQUEUED = {
  ...NO_THREAD,
  booting: 'requeued RESCHEDULING',
  running: 'requeued RESCHEDULING',
  twoRuns: 'requeued RESCHEDULING',
};
const NOT_LIVE = {
  ...NO_THREAD,
  ...whenEnded('!run_not_live'),
  archived: '!run_not_live',
  terminated: '!run_not_live',
  followed: '!run_not_live',
};

const TABLE: [string, Command, Outcomes][] = [
  ['create', command.create(), { none: 'created', otherwise: '!thread_exists' }],
  ['message', command.message('C'), { ...OVER, ...started1, otherwise: '!thread_busy' }],
  ['message, enqueue', command.message('C', 'enqueue'), { ...OVER, ...started1, otherwise: 'message.added queued' }],
  [
    'message, interrupt',
    command.message('C', 'interrupt'),
    {
      ...OVER,
      ...started1,
      requeued: 'cancelled message.added queued RUNNING',
      followed: 'cancelled message.added queued RUNNING',
      twoRuns: 'cancelled cancelled message.added queued',
      otherwise: 'cancelled message.added queued',
    },
  ],
  [
    'message for an existing Run',
    command.message('A', 'enqueue'),
    { ...OVER, idle: started1.idle ?? '', followed: 'message.added queued', otherwise: '!illegal_transition' },
  ],
  [
    'decide',
    command.decide('Q'),
    { ...OVER, waiting: 'tool.confirmation_decided resumed', otherwise: '!request_not_pending' },
  ],
  ['decide, unknown', command.decide('other'), { ...OVER, otherwise: '!request_not_pending' }],
  [
    'interrupt',
    command.interrupt(),
    { ...OVER, ...whenEnded('!no_active_run'), twoRuns: 'cancelled RESCHEDULING', otherwise: 'cancelled IDLE' },
  ],
  [
    'interrupt A',
    command.interrupt('A'),
    {
      ...OVER,
      ...whenEnded('!run_not_live'),
      followed: '!run_not_live',
      twoRuns: 'cancelled RESCHEDULING',
      otherwise: 'cancelled IDLE',
    },
  ],
  [
    'interrupt B',
    command.interrupt('B'),
    { ...OVER, twoRuns: 'cancelled', followed: 'cancelled IDLE', otherwise: '!run_not_live' },
  ],
  [
    'retry A',
    command.retry('A', 'C'),
    { ...OVER, failed: 'queued RUNNING', cancelled: 'queued RUNNING', otherwise: '!run_not_retryable' },
  ],
  [
    'archive',
    { type: 'archive' },
    {
      ...NO_THREAD,
      ...whenEnded('archived'),
      archived: '.',
      terminated: '!thread_terminated',
      otherwise: '!thread_busy',
    },
  ],
  [
    'unarchive',
    { type: 'unarchive' },
    { ...NO_THREAD, archived: 'unarchived', terminated: '!thread_terminated', otherwise: '.' },
  ],
  [
    'set the title',
    command.setTitle('Mine'),
    { ...NO_THREAD, terminated: '!thread_terminated', otherwise: 'title_set' },
  ],
  ['attach a file', { type: 'attach_file', fileId: 'F' }, { ...OVER, otherwise: 'files.updated' }],
  [
    'detach a file',
    { type: 'detach_file', fileId: 'F' },
    { ...OVER, archived: 'files.updated', otherwise: 'files.updated' },
  ],
  [
    'delete a file',
    { type: 'delete_file', fileId: 'F' },
    { ...OVER, archived: 'files.updated', otherwise: 'files.updated' },
  ],
  ['claim A', command.claim('A'), { ...NO_THREAD, queued: 'claimed', otherwise: '!stale_dispatch' }],
  [
    'claim A, 2nd dispatch',
    command.claim('A', 2),
    { ...NO_THREAD, requeued: 'claimed RUNNING', otherwise: '!stale_dispatch' },
  ],
  ['claim B', command.claim('B'), { ...NO_THREAD, followed: 'claimed RUNNING', otherwise: '!stale_dispatch' }],
  [
    'start',
    command.start('A'),
    {
      ...NO_THREAD,
      booting: 'started',
      running: '!illegal_transition',
      twoRuns: '!illegal_transition',
      otherwise: '!stale_attempt',
    },
  ],
  ['record', command.say('A'), whileRunning('assistant.message_added', 'assistant.message_added')],
  ['record nothing', { type: 'record', runId: 'A', attempt: 1, facts: [] }, whileRunning('.', '.')],
  ['wait', command.wait('A', ['Q']), whileRunning('waiting', 'waiting')],
  ['wait for no request', command.wait('A', []), whileRunning('!illegal_transition', '!illegal_transition')],
  [
    'wait twice for one request',
    command.wait('A', ['Q', 'Q']),
    whileRunning('!illegal_transition', '!illegal_transition'),
  ],
  ['complete', command.complete('A'), whileRunning('completed IDLE', 'completed RESCHEDULING')],
  [
    'fail',
    command.fail('A', runError('internal')),
    {
      ...NO_THREAD,
      booting: 'failed IDLE',
      running: 'failed IDLE',
      twoRuns: 'failed RESCHEDULING',
      otherwise: '!stale_attempt',
    },
  ],
  [
    'fail, retryable',
    command.fail('A', runError('provider_unavailable')),
    { ...REQUEUED, otherwise: '!stale_attempt' },
  ],
  ['hand over', command.handOver('A'), { ...REQUEUED, otherwise: '!stale_attempt' }],
  ['reclaim', command.reclaim('A'), { ...NOT_LIVE, ...REQUEUED, otherwise: '!stale_attempt' }],
  [
    'expire queue',
    command.expire('A', 'queue', { attempt: 0 }),
    { ...NOT_LIVE, queued: 'expired IDLE', otherwise: '!stale_attempt' },
  ],
  [
    'expire queue, 2nd dispatch',
    command.expire('A', 'queue', { dispatch: 2 }),
    { ...NOT_LIVE, requeued: 'expired IDLE', otherwise: '!stale_attempt' },
  ],
  [
    'expire queue of B',
    command.expire('B', 'queue', { attempt: 0 }),
    { ...NO_THREAD, followed: 'expired IDLE', twoRuns: '!illegal_transition', otherwise: '!run_not_live' },
  ],
  [
    'expire work',
    command.expire('A', 'work'),
    {
      ...NOT_LIVE,
      booting: 'expired IDLE',
      running: 'expired IDLE',
      twoRuns: 'expired RESCHEDULING',
      waiting: '!illegal_transition',
      otherwise: '!stale_attempt',
    },
  ],
  [
    'expire wait',
    command.expire('A', 'wait'),
    {
      ...NOT_LIVE,
      waiting: 'expired IDLE',
      booting: '!illegal_transition',
      running: '!illegal_transition',
      twoRuns: '!illegal_transition',
      otherwise: '!stale_attempt',
    },
  ],
  [
    'terminate',
    command.terminate(),
    {
      ...NO_THREAD,
      ...whenEnded('terminated TERMINATED'),
      archived: 'terminated TERMINATED',
      terminated: '.',
      twoRuns: 'cancelled cancelled terminated TERMINATED',
      otherwise: 'cancelled terminated TERMINATED',
    },
  ],
];

function whileRunning(alone: string, before: string): Outcomes {
  const booting = { booting: '!illegal_transition' };
  return { ...NO_THREAD, ...booting, running: alone, twoRuns: before, otherwise: '!stale_attempt' };
}

describe.each(TABLE)('%s', (_name, asked, { otherwise, ...outcomes }) => {
  test.each(Object.keys(STATES) as StateName[])('in %s', (name) => {
    expect(
      given(...STATES[name])
        .when(asked)
        .outcome(),
    ).toBe(outcomes[name] ?? otherwise);
  });
});

test('every command is in the table', () => {
  const types: Record<Command['type'], true> = {
    create_thread: true,
    add_message: true,
    decide_permission: true,
    interrupt: true,
    retry_run: true,
    archive: true,
    unarchive: true,
    set_title: true,
    attach_file: true,
    detach_file: true,
    delete_file: true,
    claim_run: true,
    start_run: true,
    record: true,
    wait_for_decisions: true,
    complete_run: true,
    fail_run: true,
    hand_over_run: true,
    reclaim_run: true,
    expire_run: true,
    terminate_thread: true,
  };
  expect(new Set(TABLE.map(([, { type }]) => type))).toEqual(new Set(Object.keys(types)));
});

describe('a batch of commands', () => {
  test('decides each command in the state after the one before', () => {
    given(...RUNNING)
      .when(command.interrupt(), command.message('B'))
      .then(cancelled('A', 'ann', 60_000), entered('IDLE', 'A'), message('B'), queued('B'), entered('RUNNING', 'B'));
  });

  test('returns the same state object if there is nothing to do', () => {
    given(created()).when({ type: 'unarchive' }, { type: 'unarchive' }).thenNothing();
    given(...RUNNING)
      .when()
      .thenNothing();
  });

  test('can claim and start a Run', () => {
    given(...QUEUED)
      .when(command.claim('A'), command.start('A'))
      .then(claimed('A'), started('A'));
  });
});

test('decide does not change the state that it is given', () => {
  for (const [name, events] of Object.entries(STATES)) {
    const state = deepFreeze(stateAfter(events));
    const before = JSON.stringify(state);
    for (const [, asked] of TABLE) decide([asked], state, NOW);
    expect([name, JSON.stringify(state)]).toEqual([name, before]);
  }
});

test('a decision is the fold of its events, which have the given time', () => {
  for (const events of Object.values(STATES)) {
    const state = stateAfter(events);
    for (const [, asked] of TABLE) {
      const decision = decide([asked], state, NOW);
      if (isRejection(decision)) continue;
      expect(stateAfter(decision.events, state, NOW)).toEqual(decision.state);
      expect(decision.events.every(({ occurredAt }) => occurredAt === NOW)).toBe(true);
    }
  }
  expect(NOW > THEN).toBe(true);
});

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}
