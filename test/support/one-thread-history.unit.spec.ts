import {
  unexplained,
  type AnswerBody,
  type Asked,
  type Call,
  type History,
  type HistoryEvent,
} from './one-thread-history.ts';

const message = (text: string): Asked => ({ kind: 'message', text });
const decide = (decision: string, requestId = 'q'): Asked => ({ kind: 'decision', requestId, decision });
const interrupt = (runId: string | null = null): Asked => ({ kind: 'interrupt', runId });
const remove: Asked = { kind: 'delete' };

/** A commit: when, and its events as [type, run, data]. */
type Commit = [at: number | null, ...events: [type: string, runId: string | null, data?: HistoryEvent['data']][]];

function eventsOf(...commits: Commit[]): HistoryEvent[] {
  let version = 0;
  return commits.flatMap(([occurredAt, ...events], i) =>
    events.map(([type, runId, data = {}]) => ({
      version: ++version,
      transaction: String(i),
      type,
      data,
      runId,
      occurredAt,
    })),
  );
}

const entered = (status: string): [string, null, HistoryEvent['data']] => ['thread.status_entered', null, { status }];
const cancelled = (at: number, runId = 'r1'): Commit => [at, ['run.cancelled', runId], entered('IDLE')];
const added = (at: number, text: string, runId: string): Commit => [
  at,
  ['message.added', runId, { text }],
  ['run.queued', runId],
  entered('RUNNING'),
];
const decided = (at: number, decision: string): Commit => [
  at,
  ['tool.confirmation_decided', 'r1', { requestId: 'q', decision }],
  ['run.resumed', 'r1'],
];
/** 5 events: a Run that waits for an answer to `q`. */
const SETUP: Commit[] = [
  [1, ['thread.created', null], ...(added(1, 'first', 'r1').slice(1) as [string, string][])],
  [2, ['run.waiting', 'r1', { requests: [{ requestId: 'q' }] }]],
];

const answer = (runId: string, runStatus: string, status: string, last = runId): AnswerBody => ({
  events: [{ run: { id: runId, status: runStatus } }],
  thread: { status, last_run_id: last },
});
const call = (asked: Asked, sentAt: number, answeredAt: number, status: number, body: AnswerBody = {}): Call => ({
  asked,
  sentAt,
  answeredAt,
  status,
  body,
});
const isCancelled = answer('r1', 'cancelled', 'IDLE');
const allowed = (from: number, to: number, decision = 'allow'): Call =>
  call(decide(decision), from, to, 200, answer('r1', 'queued', 'RUNNING'));

function find(calls: Call[], commits: Commit[], more: Partial<History> = {}): string[] {
  return unexplained({ calls, events: eventsOf(...SETUP, ...commits), whenBusy: 'reject', startVersion: 5, ...more });
}

describe('finds an order', () => {
  test('of a decision, an interrupt, a message, and what each of them made others be refused', () => {
    const calls = [
      allowed(10, 30),
      call(decide('reject'), 10, 30, 409),
      call(message('early'), 10, 30, 409),
      call(interrupt(), 15, 50, 200, isCancelled),
      call(interrupt(), 25, 50, 409),
      call(message('second'), 40, 60, 200, answer('r2', 'queued', 'RUNNING')),
      call(message('late'), 40, 60, 409),
    ];
    expect(find(calls, [decided(20, 'allow'), cancelled(35), added(45, 'second', 'r2')])).toEqual([]);
  });

  test('where several name one Run, and only the slowest can have cancelled it', () => {
    const named = (from: number, to: number) => call(interrupt('r1'), from, to, 200, isCancelled);
    expect(find([named(21, 22), named(10, 40), named(50, 60)], [cancelled(20)])).toEqual([]);
  });

  test('where messages interrupt, or queue up', () => {
    const taken = call(message('second'), 10, 30, 200, answer('r2', 'queued', 'RUNNING'));
    const replaced: Commit = [
      20,
      ['run.cancelled', 'r1'],
      ['message.added', 'r2', { text: 'second' }],
      ['run.queued', 'r2'],
    ];
    expect(find([taken], [replaced], { whenBusy: 'interrupt' })).toEqual([]);
    const queued: Commit = [20, ['message.added', 'r2', { text: 'second' }], ['run.queued', 'r2']];
    expect(find([taken], [queued], { whenBusy: 'enqueue' })).toEqual([]);
  });

  test('of deletes among others', () => {
    const calls = [
      allowed(10, 30),
      call(remove, 10, 50, 200),
      call(remove, 10, 50, 404),
      call(message('late'), 20, 50, 404),
      call(decide('reject'), 51, 60, 404),
    ];
    expect(find(calls, [decided(20, 'allow'), [null, ['deleted', null]]])).toEqual([]);
  });
});

describe('finds what no order explains', () => {
  const cases: [string, Call[], Commit[], Partial<History>?][] = [
    ['two winners of a decision', [allowed(10, 30), allowed(10, 30)], [decided(20, 'allow')]],
    ['a decision that won and is not stored', [allowed(10, 30)], []],
    ['another decision stored than answered', [allowed(10, 30)], [decided(20, 'reject')]],
    ['a decision refused that was pending all the time', [call(decide('allow'), 10, 30, 409)], []],
    ['a message stored that nobody sent', [], [cancelled(20), added(25, 'nobody', 'r2')]],
    [
      'a message that was refused and is stored',
      [call(interrupt(), 10, 30, 200, isCancelled), call(message('no'), 20, 30, 409)],
      [cancelled(20), added(25, 'no', 'r2')],
    ],
    [
      'a message taken while a Run is active',
      [call(message('m'), 10, 30, 200, answer('r2', 'queued', 'RUNNING'))],
      [added(20, 'm', 'r2')],
    ],
    [
      'a message refused while the Thread was idle',
      [call(interrupt(), 10, 30, 200, isCancelled), call(message('m'), 31, 40, 409)],
      [cancelled(20)],
    ],
    [
      'too many conflicts',
      [
        call(message('m'), 10, 30, 409, {
          error: { code: 'idempotency_conflict', message: 'Too many writers change the Thread; repeat the request.' },
        }),
      ],
      [],
    ],
    ['an interrupt refused while a Run was active', [call(interrupt(), 10, 30, 409)], []],
    ['an effect after the answer', [call(interrupt(), 10, 19, 200, isCancelled)], [cancelled(20)]],
    ['an effect before the call', [call(interrupt(), 21, 30, 200, isCancelled)], [cancelled(20)]],
    [
      'an effect of an interrupt that names the Run, before the call',
      [call(interrupt('r1'), 21, 30, 200, isCancelled)],
      [cancelled(20)],
    ],
    ['an interrupt that tells of a Run that has not ended', [call(interrupt('r1'), 10, 30, 200, isCancelled)], []],
    [
      'a cancellation seen before it was asked for',
      [call(interrupt('r1'), 5, 9, 200, isCancelled), call(interrupt('r1'), 10, 30, 200, isCancelled)],
      [cancelled(20)],
    ],
    [
      'an answer that shows another status',
      [call(interrupt(), 10, 30, 200, answer('r1', 'running', 'IDLE'))],
      [cancelled(20)],
    ],
    [
      'an answer that shows the Thread as it no longer was',
      [call(interrupt(), 10, 30, 200, answer('r1', 'cancelled', 'RUNNING'))],
      [cancelled(20)],
    ],
    // Each alone is right at some moment, but not in this order.
    [
      'a refusal by what an earlier answer had seen to be over',
      [
        call(interrupt(), 10, 12, 409),
        call(decide('allow'), 13, 40, 200, answer('r1', 'queued', 'RUNNING')),
        call(interrupt(), 10, 50, 200, isCancelled),
      ],
      [decided(20, 'allow'), cancelled(30)],
    ],
    [
      'two in the stream the other way round than in time',
      [call(interrupt(), 10, 20, 200, isCancelled), call(message('m'), 21, 40, 200, answer('r2', 'queued', 'RUNNING'))],
      [[20, ['message.added', 'r2', { text: 'm' }], ['run.queued', 'r2']], cancelled(20)],
      { whenBusy: 'enqueue' },
    ],
    [
      'a refusal that goes back behind one that was answered before',
      [call(interrupt(), 10, 100, 200, isCancelled), call(interrupt(), 10, 30, 409), call(message('m'), 31, 60, 409)],
      [cancelled(20)],
    ],
    [
      'two commands in one commit',
      [allowed(10, 30), call(message('m'), 10, 30, 200, answer('r2', 'queued', 'RUNNING'))],
      [[20, ['message.added', 'r2', { text: 'm' }], ...(decided(20, 'allow').slice(1) as [string, string][])]],
      { whenBusy: 'enqueue' },
    ],
    ['not found without a deletion', [call(message('m'), 10, 30, 404)], []],
    ['two that deleted it', [call(remove, 10, 30, 200), call(remove, 10, 30, 200)], [[null, ['deleted', null]]]],
    [
      'a refusal by the state of what is deleted',
      [call(remove, 10, 20, 200), call(message('m'), 21, 30, 409)],
      [[null, ['deleted', null]]],
    ],
    ['an error', [call(message('m'), 10, 30, 500)], []],
  ];

  test.each(cases.map(([what, ...input]) => ({ what, input })))('$what', ({ input }) => {
    expect(find(...input)).not.toEqual([]);
  });
});
