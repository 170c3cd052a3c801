import type { Command } from './commands.ts';
import { command, event, given, happened, LIMITS, newRun, threadAfter } from './decider.testing.ts';
import { runError } from './run-errors.ts';

const { created, message, queued, claimed, started, waiting, decided, resumed, requeued } = happened;
const { completed, failed, cancelled, expired, entered } = happened;

const BEGUN = [created(), message('A'), queued('A'), entered('RUNNING', 'A')];
const RUNNING = [...BEGUN, claimed('A'), started('A')];
const SINCE_STARTED = 60_000;

describe('a first message', () => {
  test('creates a Run with the current version and limits of the agent', () => {
    const run = { runId: 'A', agentVersion: 3, limits: { ...LIMITS, queueMs: 5 } };
    given()
      .when(command.create(), { ...command.message('A'), run, requestId: 'mine', fileIds: ['F'] })
      .then(
        created(),
        event('files.updated', { fileId: 'F', change: 'attached' }),
        event('message.added', { text: 'hi', requestId: 'mine', fileIds: ['F'] }, 'A'),
        queued('A', { agentVersion: 3, limits: run.limits }),
        entered('RUNNING', 'A'),
      );
  });

  test('is rejected if the Thread exists', () => {
    given(created()).when(command.create(), command.message('A')).thenRejected('thread_exists');
  });
});

describe('whenBusy: enqueue', () => {
  const queue = [...RUNNING, message('B'), queued('B'), message('C'), queued('C')];
  const next = (...events: ReturnType<typeof created>[]) => threadAfter(...events).runs.map(({ id }) => id);

  test('keeps the order of messages', () => {
    expect(next(...queue)).toEqual(['A', 'B', 'C']);
    expect(next(...queue, completed('A'))).toEqual(['B', 'C']);
  });

  test('the commit that ends a Run dispatches the next', () => {
    const ended = [...queue, completed('A'), entered('RESCHEDULING', 'A')];
    const after = threadAfter(...ended);
    expect(after.runs.map((run) => 'cause' in run && run.cause)).toEqual(['followed', 'new']);
    given(...ended)
      .when(command.claim('C'))
      .thenRejected('stale_dispatch');
    given(...ended)
      .when(command.claim('B'))
      .then(claimed('B'), entered('RUNNING', 'B'));
  });

  test.each([
    ['completed', command.complete('A'), completed('A', SINCE_STARTED)],
    ['failed', command.fail('A', runError('internal')), failed('A', runError('internal'), SINCE_STARTED)],
    ['cancelled', command.interrupt(), cancelled('A', 'ann', SINCE_STARTED)],
    ['expired', command.expire('A', 'work'), expired('A', 'work', SINCE_STARTED)],
  ])('if the current Run is %s, only it ends, and the next one follows', (_how, asked, ending) => {
    given(...queue)
      .when(asked)
      .then(ending, entered('RESCHEDULING', 'A'));
  });

  test('an interrupt can name a Run that waits, and does not change the others', () => {
    const { state } = given(...queue)
      .when(command.interrupt('B'))
      .decision();
    expect(state).toMatchObject({
      status: 'RUNNING',
      runs: [
        { id: 'A', status: 'running' },
        { id: 'C', cause: 'new' },
      ],
    });
  });

  test('accepts at most 100 Runs that wait', () => {
    const waits = Array.from({ length: 100 }, (_, i) => queued(`Q${i}`));
    given(...RUNNING, ...waits.slice(1))
      .when(command.message('Z', 'enqueue'))
      .then(message('Z'), queued('Z'));
    given(...RUNNING, ...waits)
      .when(command.message('Z', 'enqueue'))
      .thenRejected('too_many_queued_runs');
  });
});

describe('whenBusy: interrupt', () => {
  const interrupted = (delayMs: number, durationMs: number | null) => [
    cancelled('A', 'ann', durationMs),
    message('B'),
    queued('B', { delayMs }),
  ];

  test.each([
    ['starting', [...BEGUN, claimed('A')], null],
    ['working', RUNNING, SINCE_STARTED],
  ])('the new Run waits up to 2 s for a worker that is %s', (_what, events, durationMs) => {
    given(...events)
      .when(command.message('B', 'interrupt'))
      .then(...interrupted(2_000, durationMs));
  });

  test.each([
    ['queued', BEGUN, null],
    ['waiting for a person', [...RUNNING, waiting('A', ['Q'])], SINCE_STARTED],
  ])('the new Run waits for no worker if the Run is %s', (_what, events, durationMs) => {
    given(...events)
      .when(command.message('B', 'interrupt'))
      .then(...interrupted(0, durationMs));
  });

  test('a second interrupt waits for the worker that the first one waited for', () => {
    const once = [...RUNNING, cancelled('A'), message('B'), queued('B', { delayMs: 2_000 })];
    given(...once)
      .when(command.message('C', 'interrupt'))
      .then(cancelled('B'), message('C'), queued('C', { delayMs: 2_000 }));
  });

  test('the delay of a retry is no worker to wait for', () => {
    given(...RUNNING, requeued('A', { delayMs: 9_000 }), entered('RESCHEDULING', 'A'))
      .when(command.message('B', 'interrupt'))
      .then(...interrupted(0, SINCE_STARTED), entered('RUNNING', 'B'));
  });

  test('also ends Runs that an earlier version of the agent let queue up', () => {
    given(...RUNNING, message('B'), queued('B'))
      .when(command.message('C', 'interrupt'))
      .then(cancelled('A', 'ann', SINCE_STARTED), cancelled('B'), message('C'), queued('C', { delayMs: 2_000 }));
  });

  test('is a plain message if no Run is active', () => {
    given(created())
      .when(command.message('A', 'interrupt'))
      .then(...BEGUN.slice(1));
  });
});

describe('a permission decision', () => {
  const asked = [...RUNNING, waiting('A', ['Q1', 'Q2', 'Q3'])];

  test('is one event, and the last one resumes the Run', () => {
    given(...asked)
      .when(command.decide('Q2', 'reject_once'))
      .then(decided('A', 'Q2', 'reject_once'));
    given(...asked, decided('A', 'Q2'), decided('A', 'Q1'))
      .when(command.decide('Q3'))
      .then(decided('A', 'Q3'), resumed('A'));
  });

  test('can come with the others in one batch', () => {
    given(...asked)
      .when(command.decide('Q3'), command.decide('Q1', 'reject_once'), command.decide('Q2'))
      .then(decided('A', 'Q3'), decided('A', 'Q1', 'reject_once'), decided('A', 'Q2'), resumed('A'));
  });

  test('is accepted only once', () => {
    given(...asked, decided('A', 'Q1'))
      .when(command.decide('Q1', 'reject_once'))
      .thenRejected('request_not_pending');
    given(...asked)
      .when(command.decide('Q1'), command.decide('Q1'))
      .thenRejected('request_not_pending');
  });

  test.each([
    ['unknown', asked, 'Q9'],
    ['of a Run that was interrupted', [...asked, cancelled('A')], 'Q1'],
    ['of a Run that continued', [...RUNNING, waiting('A', ['Q1']), decided('A', 'Q1'), resumed('A')], 'Q1'],
  ])('is rejected if the request is %s', (_what, events, requestId) => {
    given(...events)
      .when(command.decide(requestId))
      .thenRejected('request_not_pending');
  });

  test('for an earlier request does not decide a later one', () => {
    const again = [...RUNNING, waiting('A', ['Q1']), decided('A', 'Q1'), resumed('A')];
    const events = [...again, claimed('A', 2), started('A', 2), waiting('A', ['Q2'], 2)];
    given(...events)
      .when(command.decide('Q1'))
      .thenRejected('request_not_pending');
    given(...events)
      .when(command.decide('Q2'))
      .then(decided('A', 'Q2'), resumed('A', 3));
  });
});

describe('retry', () => {
  const retryable = failed('A', runError('provider_unavailable'));

  test.each([
    ['continues a failed Run', retryable, 'retry' as const],
    ['continues a cancelled Run', cancelled('A'), 'resume' as const],
    ['continues an expired Run', expired('A', 'wait'), 'resume' as const],
  ])('%s', (_what, ending, trigger) => {
    given(...RUNNING, ending, entered('IDLE', 'A'))
      .when(command.retry('A', 'B'))
      .then(queued('B', { trigger }), entered('RUNNING', 'B'));
  });

  test('continues a Run that failed with any error, if an operator has removed the cause', () => {
    given(...RUNNING, failed('A', runError('provider_auth')), entered('IDLE', 'A'))
      .when({ ...command.retry('A', 'B'), isRepaired: true } as Command)
      .then(queued('B', { trigger: 'retry' }), entered('RUNNING', 'B'));
  });

  test.each([
    ['it completed', [...RUNNING, completed('A')], ' It is completed.'],
    [
      'its error is not retryable',
      [...RUNNING, failed('A', runError('provider_auth'))],
      ' Its error is not retryable.',
    ],
    [
      'it is not the newest',
      [...RUNNING, retryable, message('B'), queued('B'), completed('B')],
      ' The Thread has a newer Run.',
    ],
    [
      'it was retried already',
      [...RUNNING, retryable, queued('B', { trigger: 'retry' })],
      ' The Thread has a newer Run.',
    ],
    ['it is active', RUNNING, ' It has not ended.'],
    ['there is none', [created()], ''],
  ])('is rejected with the reason if %s', (_why, events, reason) => {
    const decided = given(...events).when(command.retry('A', 'C'));
    decided.thenRejected('run_not_retryable', `The Run cannot be retried.${reason}`);
  });

  test('follows the stored error, not the catalogue', () => {
    const lasting = failed('A', runError('provider_unavailable', { retryable: false }));
    given(...RUNNING, lasting)
      .when(command.retry('A', 'B'))
      .thenRejected('run_not_retryable');
  });

  test('is rejected while an earlier Run is active', () => {
    given(...RUNNING, message('B'), queued('B'), cancelled('B'))
      .when(command.retry('B', 'C'))
      .thenRejected('thread_busy');
  });

  test('needs a new Run id', () => {
    const again = { type: 'retry_run' as const, runId: 'A', run: newRun('A') };
    given(...RUNNING, cancelled('A'), entered('IDLE', 'A'))
      .when(again)
      .thenRejected('illegal_transition');
  });
});

describe('files', () => {
  test.each([
    ['attach_file', 'attached'],
    ['detach_file', 'detached'],
    ['delete_file', 'deleted'],
  ] as const)('%s appends its event', (type, change) => {
    given(created())
      .when({ type, fileId: 'F' })
      .then(event('files.updated', { fileId: 'F', change }));
  });

  test('have their names in events, if known', () => {
    const file = { fileId: 'F', name: 'a.pdf', kind: 'attachment' } as const;
    given(created())
      .when({ type: 'attach_file', ...file }, { type: 'delete_file', ...file })
      .then(
        event('files.updated', { ...file, change: 'attached' }),
        event('files.updated', { ...file, change: 'deleted' }),
      );
    given(created())
      .when({ ...command.message('A'), fileIds: ['F', 'G'], fileNames: new Map([['F', 'a.pdf']]) })
      .then(
        event('files.updated', { ...file, change: 'attached' }),
        event('files.updated', { fileId: 'G', change: 'attached' }),
        mounting('F', 'G'),
        queued('A'),
        entered('RUNNING', 'A'),
      );
  });

  const updated = (fileId: string, change: 'attached' | 'detached' | 'deleted' = 'attached') =>
    event('files.updated', { fileId, change });
  const mounting = (...fileIds: string[]) => event('message.added', { text: 'hi', requestId: null, fileIds }, 'A');

  test('the next message mounts its own files and those attached since the last one', () => {
    given(created(), updated('F'), updated('G'))
      .when({ ...command.message('A'), fileIds: ['H'] })
      .then(updated('H'), mounting('F', 'G', 'H'), queued('A'), entered('RUNNING', 'A'));
  });

  test('a file is mounted once', () => {
    const mounted = [updated('F'), mounting('F'), queued('A'), cancelled('A', null)];
    given(created(), ...mounted)
      .when(command.message('B'))
      .then(message('B'), queued('B'), entered('RUNNING', 'B'));
    expect(threadAfter(created(), ...mounted)).not.toHaveProperty('unmounted');
  });

  test.each(['detached', 'deleted'] as const)('a file that was %s before is not mounted', (change) => {
    given(created(), updated('F'), updated('G'), updated('F', change))
      .when(command.message('A'))
      .then(mounting('G'), queued('A'), entered('RUNNING', 'A'));
  });

  test('the next message mounts a file that a message of the previous release did not name', () => {
    const before = [updated('F'), message('A'), queued('A'), cancelled('A', null)];
    const again = event('message.added', { text: 'hi', requestId: null, fileIds: ['F'] }, 'B');
    given(created(), ...before)
      .when(command.message('B'))
      .then(again, queued('B'), entered('RUNNING', 'B'));
  });

  test('a message does not mount files that a Run made', () => {
    const made = event('files.updated', { fileId: 'F', change: 'attached' }, 'A', 1);
    given(...RUNNING, made, completed('A'), entered('IDLE', 'A'))
      .when(command.message('B'))
      .then(message('B'), queued('B'), entered('RUNNING', 'B'));
  });
});

describe('a title', () => {
  test('can be set and removed, also while archived', () => {
    const { archived, titleSet } = happened;
    given(created()).when(command.setTitle('Mine'), command.setTitle(null)).then(titleSet('Mine'), titleSet(null));
    given(created(), archived()).when(command.setTitle('Mine')).then(titleSet('Mine'));
  });
});

describe('archiving', () => {
  test('and unarchiving can be repeated', () => {
    const archived = happened.archived();
    given(created()).when({ type: 'archive' }, { type: 'archive' }).then(archived);
    given(created(), archived).when({ type: 'unarchive' }, { type: 'unarchive' }).then(happened.unarchived());
    given(created(), archived, happened.unarchived())
      .when(command.message('A'))
      .then(...BEGUN.slice(1));
  });
});
