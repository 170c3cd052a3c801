import type { Command } from './commands.ts';
import { command, happened, LIMITS, NOW, stateAfter } from './decider.testing.ts';
import { decide, type Decision } from './decide.ts';
import type { ThreadEvent } from './events.ts';
import { runError } from './run-errors.ts';
import { workChanges, type WorkRow } from './work-row.ts';

const { created, queued, claimed, started, waiting, decided, resumed, requeued, completed, entered } = happened;

const LEASE_MS = 10_000;
const QUEUED = [created(), queued('A'), entered('RUNNING', 'A')];
const BOOTING = [...QUEUED, claimed('A')];
const RUNNING = [...BOOTING, started('A')];
const WAITING = [...RUNNING, waiting('A', ['Q1', 'Q2'])];
const REQUEUED = [...RUNNING, requeued('A', { delayMs: 4_000 }), entered('RESCHEDULING', 'A')];
const RESUMED = [...WAITING, decided('A', 'Q1'), decided('A', 'Q2'), resumed('A')];
const TWO_RUNS = [...RUNNING, queued('B')];

function row(runId: string, more: Partial<WorkRow>): WorkRow {
  const of = {
    runId,
    organizationId: 'ORGANIZATION',
    agentId: 'AGENT',
    queueMs: LIMITS.queueMs,
    workMs: LIMITS.workMs,
  };
  return { ...of, state: 'ready', dispatch: 1, attempt: 0, holder: null, dueInMs: null, ...more };
}

const ready = (runId: string, more: Partial<WorkRow> = {}) => row(runId, { dueInMs: LIMITS.queueMs, ...more });
const leased = (runId: string, more: Partial<WorkRow> = {}) =>
  row(runId, { state: 'leased', attempt: 1, holder: 'worker', dueInMs: LEASE_MS, ...more });

function changes(events: ThreadEvent[], asked: Command[]) {
  const before = stateAfter(events);
  return workChanges(before, (decide(asked, before, NOW) as Decision).state, LEASE_MS);
}

test.each<[string, ThreadEvent[], Command[], WorkRow[]]>([
  ['a new Run is ready', [created()], [command.message('A')], [ready('A')]],
  ['created and queued in one', [], [command.create(), command.message('A')], [ready('A')]],
  ['behind another it has no due date', RUNNING, [command.message('B', 'enqueue')], [row('B', { state: 'delayed' })]],
  ['claimed, it is leased', QUEUED, [command.claim('A')], [leased('A')]],
  ['claimed and started in one', QUEUED, [command.claim('A'), command.start('A')], [leased('A')]],
  ['started, it keeps its lease', BOOTING, [command.start('A')], []],
  ['a step does not renew the lease', RUNNING, [command.say('A')], []],
  [
    'waiting, it has the time of a person',
    RUNNING,
    [command.wait('A', ['Q'])],
    [row('A', { state: 'waiting', attempt: 1, dueInMs: LIMITS.waitMs })],
  ],
  ['one of two decisions does not renew that', WAITING, [command.decide('Q1')], []],
  [
    'the last decision makes it ready',
    [...WAITING, decided('A', 'Q1')],
    [command.decide('Q2')],
    [ready('A', { dispatch: 2, attempt: 1 })],
  ],
  ['lost, it is ready at once', RUNNING, [command.reclaim('A')], [ready('A', { dispatch: 2, attempt: 1 })]],
  ['handed over, too', RUNNING, [command.handOver('A')], [ready('A', { dispatch: 2, attempt: 1 })]],
  [
    'a retryable failure delays it',
    RUNNING,
    [command.fail('A', runError('provider_unavailable'))],
    [row('A', { state: 'delayed', dispatch: 2, attempt: 1, dueInMs: 1_000 })],
  ],
  ['claimed again', REQUEUED, [command.claim('A', 2)], [leased('A', { dispatch: 2, attempt: 2 })]],
  [
    'what has to wait for a worker to stop is delayed',
    RUNNING,
    [command.message('B', 'interrupt')],
    [row('B', { state: 'delayed', dueInMs: 2_000 })],
  ],
  ['a file is no work', RUNNING, [{ type: 'attach_file', fileId: 'F' }], []],
  ['nothing is no work', [created()], [{ type: 'unarchive' }], []],
])('%s', (_name, events, asked, rows) => {
  const { rows: changed, gone } = changes(events, asked);
  expect(changed).toEqual(rows);
  expect(gone).toEqual(asked.some((one) => one.type === 'add_message' && one.whenBusy === 'interrupt') ? ['A'] : []);
});

const ENDINGS: [string, ThreadEvent[], Command][] = [
  ['completed', RUNNING, command.complete('A')],
  ['failed', BOOTING, command.fail('A', runError('internal'))],
  ['cancelled while queued', QUEUED, command.interrupt()],
  ['cancelled while delayed', REQUEUED, command.interrupt()],
  ['cancelled while waiting', WAITING, command.interrupt()],
  ['expired while queued', QUEUED, command.expire('A', 'queue', { attempt: 0 })],
  ['expired while resumed', RESUMED, command.expire('A', 'queue', { dispatch: 2 })],
  ['expired while waiting', WAITING, command.expire('A', 'wait')],
  ['terminated', RUNNING, command.terminate()],
];

test.each(ENDINGS)('%s, its row goes', (_how, events, asked) => {
  expect(changes(events, [asked])).toEqual({ rows: [], gone: ['A'] });
});

test('the commit that ends a Run makes the next one ready, with its whole queue time', () => {
  expect(changes(TWO_RUNS, [command.complete('A')])).toEqual({ rows: [ready('B')], gone: ['A'] });
});

test('ending one that waits behind changes nothing for the current one', () => {
  expect(changes(TWO_RUNS, [command.interrupt('B')])).toEqual({ rows: [], gone: ['B'] });
});

test('terminating takes all rows', () => {
  expect(changes(TWO_RUNS, [command.terminate()])).toEqual({ rows: [], gone: ['A', 'B'] });
});

test('a stream without a Thread has no work', () => {
  expect(workChanges(stateAfter([]), stateAfter([]), LEASE_MS)).toEqual({ rows: [], gone: [] });
  expect(workChanges(stateAfter([]), stateAfter([created()]), LEASE_MS)).toEqual({ rows: [], gone: [] });
  expect(workChanges(stateAfter(TWO_RUNS), stateAfter([...TWO_RUNS, completed('A')]), LEASE_MS).gone).toEqual(['A']);
});
