import type { Command } from './commands.ts';
import { command, happened, LIMITS, NOW, stateAfter } from './decider.testing.ts';
import { decide, type Decision } from './decide.ts';
import type { ThreadEvent } from './events.ts';
import { runError } from './run-errors.ts';
import { workChanges, type WorkItem } from './work-item.ts';

const { created, queued, claimed, started, waiting, decided, resumed, requeued, completed, entered } = happened;

const LEASE_MS = 10_000;
const QUEUED = [created(), queued('A'), entered('RUNNING', 'A')];
const BOOTING = [...QUEUED, claimed('A')];
const RUNNING = [...BOOTING, started('A')];
const WAITING = [...RUNNING, waiting('A', ['Q1', 'Q2'])];
const REQUEUED = [...RUNNING, requeued('A', { delayMs: 4_000 }), entered('RESCHEDULING', 'A')];
const RESUMED = [...WAITING, decided('A', 'Q1'), decided('A', 'Q2'), resumed('A')];
const TWO_RUNS = [...RUNNING, queued('B')];

function row(runId: string, more: Partial<WorkItem>): WorkItem {
  const of = {
    runId,
    organizationId: 'ORGANIZATION',
    agentId: 'AGENT',
    queueMs: LIMITS.queueMs,
    workMs: LIMITS.workMs,
  };
  return { ...of, state: 'ready', dispatch: 1, attempt: 0, holder: null, dueInMs: null, ...more };
}

const ready = (runId: string, more: Partial<WorkItem> = {}) => row(runId, { dueInMs: LIMITS.queueMs, ...more });
const leased = (runId: string, more: Partial<WorkItem> = {}) =>
  row(runId, { state: 'leased', attempt: 1, holder: 'worker', dueInMs: LEASE_MS, ...more });

function changes(events: ThreadEvent[], asked: Command[]) {
  const before = stateAfter(events);
  return workChanges(before, (decide(asked, before, NOW) as Decision).state, LEASE_MS);
}

test.each<[string, ThreadEvent[], Command[], WorkItem[]]>([
  ['a new Run is ready', [created()], [command.message('A')], [ready('A')]],
  ['a Run that is created with its Thread is ready', [], [command.create(), command.message('A')], [ready('A')]],
  [
    'a Run behind another has no due date',
    RUNNING,
    [command.message('B', 'enqueue')],
    [row('B', { state: 'delayed' })],
  ],
  ['a claimed Run is leased', QUEUED, [command.claim('A')], [leased('A')]],
  [
    'a Run that is claimed and started in one batch is leased',
    QUEUED,
    [command.claim('A'), command.start('A')],
    [leased('A')],
  ],
  ['a start does not renew the lease', BOOTING, [command.start('A')], []],
  ['a step does not renew the lease', RUNNING, [command.say('A')], []],
  [
    'a waiting Run is due after its wait limit',
    RUNNING,
    [command.wait('A', ['Q'])],
    [row('A', { state: 'waiting', attempt: 1, dueInMs: LIMITS.waitMs })],
  ],
  ['one of two decisions does not renew the wait limit', WAITING, [command.decide('Q1')], []],
  [
    'the last decision makes the Run ready',
    [...WAITING, decided('A', 'Q1')],
    [command.decide('Q2')],
    [ready('A', { dispatch: 2, attempt: 1 })],
  ],
  [
    'the Run of a lost worker is ready immediately',
    RUNNING,
    [command.reclaim('A')],
    [ready('A', { dispatch: 2, attempt: 1 })],
  ],
  [
    'a Run that is handed over is ready immediately',
    RUNNING,
    [command.handOver('A')],
    [ready('A', { dispatch: 2, attempt: 1 })],
  ],
  [
    'a retryable failure delays the Run',
    RUNNING,
    [command.fail('A', runError('provider_unavailable'))],
    [row('A', { state: 'delayed', dispatch: 2, attempt: 1, dueInMs: 1_000 })],
  ],
  [
    'a Run that is claimed again is leased',
    REQUEUED,
    [command.claim('A', 2)],
    [leased('A', { dispatch: 2, attempt: 2 })],
  ],
  [
    'a Run that waits for an interrupted worker is delayed',
    RUNNING,
    [command.message('B', 'interrupt')],
    [row('B', { state: 'delayed', dueInMs: 2_000 })],
  ],
  ['a file changes no work item', RUNNING, [{ type: 'attach_file', fileId: 'F' }], []],
  ['a command without events changes no work item', [created()], [{ type: 'unarchive' }], []],
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
  ['terminated with its Thread', RUNNING, command.terminate()],
];

test.each(ENDINGS)('deletes the work item of a Run that is %s', (_how, events, asked) => {
  expect(changes(events, [asked])).toEqual({ rows: [], gone: ['A'] });
});

test('the commit that ends a Run makes the next one ready, with its whole queue time', () => {
  expect(changes(TWO_RUNS, [command.complete('A')])).toEqual({ rows: [ready('B')], gone: ['A'] });
});

test('the end of a Run behind does not change the current Run', () => {
  expect(changes(TWO_RUNS, [command.interrupt('B')])).toEqual({ rows: [], gone: ['B'] });
});

test('a terminated Thread has no work items', () => {
  expect(changes(TWO_RUNS, [command.terminate()])).toEqual({ rows: [], gone: ['A', 'B'] });
});

test('a stream without a Thread has no work items', () => {
  expect(workChanges(stateAfter([]), stateAfter([]), LEASE_MS)).toEqual({ rows: [], gone: [] });
  expect(workChanges(stateAfter([]), stateAfter([created()]), LEASE_MS)).toEqual({ rows: [], gone: [] });
  expect(workChanges(stateAfter(TWO_RUNS), stateAfter([...TWO_RUNS, completed('A')]), LEASE_MS).gone).toEqual(['A']);
});
