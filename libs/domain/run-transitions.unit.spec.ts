import { event, happened, LIMITS, stateAfter, threadAfter } from './decider.testing.ts';
import type { ThreadEvent } from './events.ts';
import { runError } from './run-errors.ts';
import { isTerminal, nextRunStatus, RUN_MOVES, RUN_STATUSES, type RunMove, type RunStatus } from './run-transitions.ts';

/** A copy of docs/spec/decisions.md#run-transitions, not of the code, so that a change of only one of them fails here. */
const DOCUMENT = `
| from \\ event | claimed | started | waiting | resumed | requeued | completed | failed | cancelled | expired |
|---|---|---|---|---|---|---|---|---|---|
| queued | booting | | | | | | failed | cancelled | expired |
| booting | | running | | | queued | | failed | cancelled | expired |
| running | | | waiting_input | | queued | completed | failed | cancelled | expired |
| waiting_input | | | | queued | | | failed | cancelled | expired |
| terminal | | | | | | | | | |
`;

const [header = [], , ...rows] = DOCUMENT.trim()
  .split('\n')
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
const moves = header.slice(1) as RunMove[];
const TERMINAL: RunStatus[] = ['completed', 'failed', 'cancelled', 'expired'];
const cells = rows.flatMap(([name, ...to]) =>
  (name === 'terminal' ? TERMINAL : [name as RunStatus]).flatMap((from) =>
    moves.map((move, i) => ({ from, move, to: (to[i] || null) as RunStatus | null })),
  ),
);

test('the document and the code have the same statuses and moves', () => {
  expect(moves).toEqual(RUN_MOVES);
  expect(new Set(cells.map(({ from }) => from))).toEqual(new Set(RUN_STATUSES));
  expect(cells).toHaveLength(RUN_STATUSES.length * RUN_MOVES.length);
});

test.each(RUN_STATUSES.map((status) => [status, TERMINAL.includes(status)] as const))(
  'status %s: terminal is %s',
  (status, is) => {
    expect(isTerminal(status)).toBe(is);
  },
);

const RUN = 'A';

/** The events that bring a Run to each status. */
const STORIES: Record<RunStatus, ThreadEvent[]> = {
  queued: [],
  booting: [happened.claimed(RUN)],
  running: [happened.claimed(RUN), happened.started(RUN)],
  waiting_input: [happened.claimed(RUN), happened.started(RUN), happened.waiting(RUN, ['Q'])],
  completed: [happened.claimed(RUN), happened.started(RUN), happened.completed(RUN)],
  failed: [happened.failed(RUN, runError('internal'))],
  cancelled: [happened.cancelled(RUN)],
  expired: [happened.expired(RUN, 'queue')],
};

const MOVES: Record<RunMove, ThreadEvent> = {
  claimed: happened.claimed(RUN, 2),
  started: happened.started(RUN, 2),
  waiting: happened.waiting(RUN, ['Q2'], 2),
  resumed: happened.resumed(RUN, 3),
  requeued: happened.requeued(RUN, { dispatch: 3 }, 2),
  completed: happened.completed(RUN),
  failed: happened.failed(RUN, runError('worker_lost')),
  cancelled: happened.cancelled(RUN),
  expired: happened.expired(RUN, 'work'),
};

const begun = [happened.created(), happened.message(RUN), happened.queued(RUN)];

describe.each(cells)('event $move of a $from Run', ({ from, move, to }) => {
  test(`leads to ${to ?? 'no status'}`, () => {
    expect(nextRunStatus(from, move)).toBe(to);
  });

  test(`evolves to ${to ?? 'the same state'}`, () => {
    const before = threadAfter(...begun, ...STORIES[from]);
    expect(before.newestRun?.status).toBe(from);
    const after = stateAfter([MOVES[move]], before);
    if (to === null) {
      expect(after).toBe(before);
      return;
    }
    expect(after).toMatchObject({ newestRun: { id: RUN, status: to } });
    expect(after).toMatchObject({ runs: isTerminal(to) ? [] : [{ id: RUN, status: to }] });
  });
});

test('only its own events move a Run', () => {
  const before = threadAfter(...begun);
  for (const move of Object.values(MOVES)) {
    expect(stateAfter([{ ...move, runId: 'B' }], before)).toBe(before);
    expect(stateAfter([{ ...move, runId: null }], before)).toBe(before);
  }
});

test('an event that does not apply to a Thread returns the same state object', () => {
  const { created, archived, unarchived, terminated, entered, queued } = happened;
  const none = stateAfter([]);
  for (const fact of [archived(), terminated(), queued(RUN), entered('RUNNING'), ...Object.values(MOVES)]) {
    expect(stateAfter([fact], none)).toBe(none);
  }
  const idle = threadAfter(created());
  for (const fact of [created(), unarchived(), entered('IDLE'), event('run.queued', QUEUED_DATA, null)]) {
    expect(stateAfter([fact], idle)).toBe(idle);
  }
  const ended = threadAfter(created(), terminated());
  for (const fact of [archived(), unarchived(), terminated()]) expect(stateAfter([fact], ended)).toBe(ended);
  const asked = threadAfter(...begun, ...STORIES.waiting_input, happened.decided(RUN, 'Q'));
  for (const id of ['Q', 'other']) expect(stateAfter([happened.decided(RUN, id, 'reject_once')], asked)).toBe(asked);
  const queuedOnce = threadAfter(...begun);
  expect(stateAfter([queued(RUN)], queuedOnce)).toBe(queuedOnce);
});

const QUEUED_DATA = { trigger: 'user_prompt', agentVersion: 1, limits: LIMITS, delayMs: 0 } as const;
