import { command, given, happened, threadAfter } from './decider.testing.ts';
import type { ThreadEvent, ThreadStatus } from './events.ts';
import { runError } from './run-errors.ts';
import { findLiveRun, initialState, threadStatus } from './state.ts';

const { created, archived, terminated, queued, claimed, started, waiting, decided, resumed, requeued } = happened;
const { completed, failed, cancelled } = happened;

const RUNNING = [created(), queued('A'), claimed('A'), started('A')];
const REQUEUED = [...RUNNING, requeued('A')];
const FOLLOWED = [...RUNNING, queued('B'), completed('A')];

/** The cases of docs/spec/decisions.md#thread-status, where the first match counts. */
test.each<[ThreadStatus, string, ThreadEvent[]]>([
  ['TERMINATED', 'ended by an operator', [created(), terminated()]],
  ['TERMINATED', 'ended by an operator before its Run', [...RUNNING, terminated()]],
  ['RESCHEDULING', 'current Run queued after a requeue', REQUEUED],
  ['RESCHEDULING', 'current Run queued after a requeue, with a Run behind it', [...REQUEUED, queued('B')]],
  ['RESCHEDULING', 'current Run queued behind one that completed', FOLLOWED],
  [
    'RESCHEDULING',
    'current Run queued behind one that failed',
    [...RUNNING, queued('B'), failed('A', runError('internal'))],
  ],
  ['RESCHEDULING', 'current Run queued behind one that was cancelled', [...RUNNING, queued('B'), cancelled('A')]],
  ['RUNNING', 'current Run claimed after the one before it completed', [...FOLLOWED, claimed('B')]],
  ['RUNNING', 'current Run claimed after a requeue', [...REQUEUED, claimed('A', 2)]],
  ['RUNNING', 'a first Run queued', [created(), queued('A')]],
  ['RUNNING', 'booting', [created(), queued('A'), claimed('A')]],
  ['RUNNING', 'running', RUNNING],
  ['RUNNING', 'waiting for a person', [...RUNNING, waiting('A', ['Q'])]],
  ['RUNNING', 'queued after a decision', [...RUNNING, waiting('A', ['Q']), decided('A', 'Q'), resumed('A')]],
  ['RUNNING', 'one running and one behind it', [...RUNNING, queued('B')]],
  ['RUNNING', 'one running and the one behind it cancelled', [...RUNNING, queued('B'), cancelled('B')]],
  [
    'RUNNING',
    'one queued first and the one behind it cancelled',
    [created(), queued('A'), queued('B'), cancelled('B')],
  ],
  ['RUNNING', 'a new Run after an interrupt', [...RUNNING, cancelled('A'), queued('B', { delayMs: 2_000 })]],
  ['IDLE', 'no Run yet', [created()]],
  ['IDLE', 'archived', [created(), archived()]],
  ['IDLE', 'all Runs ended', [...FOLLOWED, cancelled('B')]],
])('%s: %s', (status, _why, events) => {
  expect(threadStatus(threadAfter(...events))).toBe(status);
});

test('the log has the entered status and the Run that caused it', () => {
  const { entered } = happened;
  const running = [...RUNNING, entered('RUNNING', 'A')];
  given(...running, queued('B'))
    .when(command.complete('A'))
    .then(completed('A', 60_000), entered('RESCHEDULING', 'A'));
  given(...running)
    .when(command.terminate())
    .then(cancelled('A', null, 60_000), terminated(), entered('TERMINATED'));
  given(...running)
    .when(command.message('B', 'enqueue'))
    .then(happened.message('B'), queued('B'));
});

test('the current Run is the oldest live one, and the newest is the one queued last', () => {
  const thread = threadAfter(...RUNNING, queued('B'), queued('C'), cancelled('C'));
  expect(thread.runs.map(({ id }) => id)).toEqual(['A', 'B']);
  expect(thread.newestRun).toEqual({ id: 'C', status: 'cancelled', retryable: false });
  expect(findLiveRun(thread, 'B')?.id).toBe('B');
  expect(findLiveRun(thread, 'C')).toBeUndefined();
  expect(initialState).toEqual({ lifecycle: 'none' });
});
