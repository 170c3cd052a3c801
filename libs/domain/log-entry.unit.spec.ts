import { event, happened } from './decider.testing.ts';
import { EVENT_TYPES, LOG_ENTRY_TYPES } from './event-types.ts';
import type { StoredEvent, ThreadEvent, ThreadEventType } from './events.ts';
import { showEvent, toExtendedLogEntry, toLogEntry, type ExtendedLogEntry, type LogEntry } from './log-entry.ts';
import { runError } from './run-errors.ts';

const { cancelled, completed, expired, failed, started } = happened;

const PLACE = { threadId: 'T', version: 3, id: 'E', occurredAt: '2026-01-01T00:00:00.000Z' };
const CALL = { toolCallId: 'C', toolName: 'look', title: 'Look it up', toolInput: { at: 'home' } };
const DONE = { toolCallId: 'C', toolName: 'look', summary: 'found', result: 'secret', durationMs: 5 };
const CITED = 'so\uE200cite\uE202turn0\uE201 it is';

function stored(fact: ThreadEvent, more: Partial<StoredEvent> = {}): StoredEvent {
  const schemaVersion = EVENT_TYPES[fact.type].schemaVersion;
  return { ...fact, ...PLACE, schemaVersion, public: showEvent(fact) !== null, ...more } as StoredEvent;
}

function entry(type: LogEntry['type'], content: string, more: Partial<LogEntry> = {}): LogEntry {
  const { id, occurredAt } = PLACE;
  return { id, type, occurredAt, runId: 'A', status: 'available', content, durationMs: null, tokens: null, ...more };
}

const tool = { toolCallId: 'C', toolName: 'look' };
const toolInput = { at: 'home' };
const isError = { status: 'error' as const };
const status = (content: string, runId: string | null = null) => entry('session.status', content, { runId });

/** The table of docs/spec/decisions.md#log: each stored event and its entry, or null for none. */
const SHOWN: [string, ThreadEvent, LogEntry | null][] = [
  ['the text of a message', happened.message('A', 'hello'), entry('user.message', 'hello')],
  ['a text delta', event('assistant.text_added', { text: ' x ' }, 'A', 1), entry('agent.message.delta', ' x ')],
  ['a thinking delta', event('assistant.thinking_added', { text: 'x' }, 'A', 1), entry('agent.thinking.delta', 'x')],
  [
    'the title of a tool',
    event('tool.started', CALL, 'A', 1),
    entry('tool.use.started', 'Look it up', { ...tool, toolInput }),
  ],
  [
    'the request id',
    event('tool.confirmation_requested', { ...CALL, requestId: 'Q' }, 'A', 1),
    entry('tool.confirmation.required', 'Q', { ...tool, toolInput }),
  ],
  [
    'the summary, not the result',
    event('tool.completed', { ...DONE, outcome: 'ok' }, 'A', 1),
    entry('tool.use.completed', 'found', { ...tool, durationMs: 5 }),
  ],
  ...(['error', 'refused', 'unknown'] as const).map((outcome): [string, ThreadEvent, LogEntry] => [
    `a tool that ended as ${outcome}`,
    event('tool.completed', { ...DONE, outcome, durationMs: null }, 'A', 1),
    entry('tool.use.completed', 'found', { ...tool, ...isError }),
  ]),
  ['the file', event('file.changed', { fileId: 'F' }, 'A', 1), entry('file.changed', 'F')],
  ...(['attached', 'detached', 'deleted'] as const).map((change): [string, ThreadEvent, LogEntry] => [
    `the file that was ${change}`,
    event('files.updated', { fileId: 'F', change }),
    entry('session_files.updated', 'F', { runId: null }),
  ]),
  ...(['RUNNING', 'RESCHEDULING', 'IDLE'] as const).map((entered): [string, ThreadEvent, LogEntry] => [
    `${entered} and its Run`,
    happened.entered(entered, 'A'),
    status(entered, 'A'),
  ]),
  ['TERMINATED', happened.entered('TERMINATED'), status('TERMINATED')],
  ['archived', happened.archived(), status('archived')],
  ['unarchived', happened.unarchived(), status('unarchived')],
  [
    'the tokens of the step',
    event('usage.recorded', { inputTokens: 20, outputTokens: 3 }, 'A', 1),
    entry('usage.updated', '{"inputTokens":20,"outputTokens":3}', { tokens: 23 }),
  ],
  ['the Run, when it starts', started('A', 1), entry('run.started', 'A')],
  ['no later start of the Run', started('A', 2), null],
  ['the Run, completed', completed('A', 70), entry('run.completed', 'A', { durationMs: 70 })],
  [
    'the error’s message',
    failed('A', runError('context_too_long'), 70),
    entry('run.failed', runError('context_too_long').message, { ...isError, durationMs: 70 }),
  ],
  ['cancelled', cancelled('A', 'ann', 70), entry('run.failed', 'cancelled', { ...isError, durationMs: 70 })],
  ['expired', expired('A', 'queue'), entry('run.failed', 'expired', isError)],
  ['no creation', happened.created(), null],
  ['no termination except its status', happened.terminated(), null],
  ['no title', happened.titleSet('Mine'), null],
  ['no queueing', happened.queued('A'), null],
  ['no claim', happened.claimed('A'), null],
  ['no waiting', happened.waiting('A', ['Q']), null],
  ['no decision', happened.decided('A', 'Q'), null],
  ['no resuming', happened.resumed('A'), null],
  ['no requeueing', happened.requeued('A'), null],
  ['no message except its deltas', happened.said('A'), null],
];

test.each(SHOWN)('shows %s', (_what, fact, expected) => {
  expect(toLogEntry(stored(fact))).toEqual(expected);
});

test('the table has every type of event and every type of entry', () => {
  expect(new Set(SHOWN.map(([, { type }]) => type))).toEqual(new Set(Object.keys(EVENT_TYPES)));
  const entries = new Map(
    SHOWN.flatMap(([, { type }, shown]) => (shown === null ? [] : [[type, shown.type] as const])),
  );
  const inTable = Object.entries(EVENT_TYPES).flatMap(([type, { entry }]) => (entry === null ? [] : [[type, entry]]));
  expect([...entries].toSorted()).toEqual(inTable.toSorted());
  expect(new Set(entries.values())).toEqual(new Set(LOG_ENTRY_TYPES));
  expect(LOG_ENTRY_TYPES).toHaveLength(13);
});

test('an event that was stored as not public has no entry', () => {
  for (const [, fact] of SHOWN) expect(toLogEntry(stored(fact, { public: false }))).toBeNull();
});

describe('shows as unsupported', () => {
  const unsupported = entry('session.status', '', { status: 'unsupported' });

  test.each(['run.teleported', 'toString', '__proto__', ''])('a type that this version does not know: %j', (type) => {
    const unknown = { ...PLACE, type, data: { any: 'thing' }, runId: 'A', attempt: 1, schemaVersion: 1 };
    expect(toLogEntry({ ...unknown, public: true })).toEqual(unsupported);
    expect(toLogEntry({ ...unknown, public: false })).toBeNull();
  });

  test('a schema version that this version does not know', () => {
    expect(toLogEntry(stored(happened.message('A'), { schemaVersion: 2 }))).toEqual(unsupported);
  });

  test('a stored event that is broken', () => {
    for (const data of [null, undefined, 7, {}]) {
      for (const [, fact] of SHOWN) {
        const broken = { ...stored(fact), data, public: true } as unknown as StoredEvent;
        // An entry whose content does not come from the data is unchanged.
        const content = toLogEntry(broken)?.content;
        expect([undefined, 'string']).toContain(content === undefined ? undefined : typeof content);
      }
    }
    const broken = { ...stored(happened.message('A')), data: null } as unknown as StoredEvent;
    expect(toLogEntry(broken)).toEqual(unsupported);
  });

  test.each([
    ['tool.completed', { ...DONE, outcome: 'ok', durationMs: undefined }],
    ['tool.completed', { ...DONE, outcome: 'ok', toolCallId: 7 }],
    ['tool.started', { ...CALL, toolInput: 'text' }],
    ['usage.recorded', { inputTokens: 3 }],
  ])('a field of %s that is missing or of another type: %j', (type, data) => {
    const fact = { type, data, runId: 'A', attempt: 1 } as unknown as ThreadEvent;
    expect(toLogEntry(stored(fact, { public: true }))).toEqual(unsupported);
  });
});

test('no content has provider-private citations', () => {
  const facts: ThreadEvent[] = [
    happened.message('A', CITED),
    event('assistant.text_added', { text: CITED }, 'A', 1),
    event('tool.started', { ...CALL, title: CITED }, 'A', 1),
    event('tool.completed', { ...DONE, outcome: 'ok', summary: CITED }, 'A', 1),
    failed('A', runError('internal', { message: CITED })),
  ];
  for (const fact of facts) expect(toLogEntry(stored(fact))?.content).toBe('so it is');
});

test('every type of event has a schema version', () => {
  for (const type of Object.keys(EVENT_TYPES) as ThreadEventType[])
    expect(EVENT_TYPES[type].schemaVersion).toBeGreaterThan(0);
});

describe('with the optional fields', () => {
  const file = { fileId: 'F', name: 'sum.csv', kind: 'artifact' } as const;
  const said = { messageId: 'A-1-2', stepId: 'A-1-2' };
  const entered = { status: 'RESCHEDULING', voidedStepId: 'A-1-2' } as const;
  const BESIDES: [string, ThreadEvent, Partial<ExtendedLogEntry>][] = [
    [
      'the tool’s title',
      event('tool.confirmation_requested', { ...CALL, requestId: 'Q' }, 'A', 1),
      { title: CALL.title },
    ],
    ['message and step', event('assistant.text_added', { text: 'x', step: 2 }, 'A', 1), said],
    ['message and step of thinking', event('assistant.thinking_added', { text: 'x', step: 2 }, 'A', 1), said],
    ['no step of a release without step numbers', event('assistant.text_added', { text: 'x' }, 'A', 1), {}],
    [
      'name, kind and action',
      event('file.changed', { ...file, action: 'created' }, 'A', 1),
      { name: 'sum.csv', kind: 'artifact', action: 'created' },
    ],
    ['nothing for a file without a name', event('file.changed', { fileId: 'F' }, 'A', 1), {}],
    [
      'name, kind and action of the Thread’s files',
      event('files.updated', { ...file, change: 'deleted' }, 'A', 1),
      { name: 'sum.csv', kind: 'artifact', action: 'deleted' },
    ],
    ['the voided step', event('thread.status_entered', entered, 'A'), { voidedStepId: 'A-1-2' }],
    [
      'the files of a message',
      event('message.added', { text: 'hi', requestId: null, fileIds: ['F'] }, 'A'),
      { fileIds: ['F'] },
    ],
    ['the error of a failed Run', failed('A', runError('internal')), { error: { code: 'internal', retryable: false } }],
    ['no error of a cancelled Run', cancelled('A', null, 5), {}],
    ['nothing else', completed('A'), {}],
  ];

  test.each(BESIDES)('shows %s', (_what, fact, besides) => {
    const plain = toLogEntry(stored(fact));
    expect(toExtendedLogEntry(stored(fact))).toEqual({ ...plain, ...besides });
    for (const name of Object.keys(besides)) expect(plain).not.toHaveProperty(name);
  });

  test('shows a decision, which has no plain entry', () => {
    const { id, occurredAt } = PLACE;
    const fact = event(
      'tool.confirmation_decided',
      { requestId: 'Q', toolCallId: 'C', decision: 'reject_once', by: 'ann' },
      'A',
    );
    expect(toExtendedLogEntry(stored(fact))).toEqual({
      ...{ id, occurredAt, type: 'session.status', runId: 'A', status: 'available', content: 'decided' },
      ...{ durationMs: null, tokens: null, toolCallId: 'C', requestId: 'Q', decision: 'reject_once' },
    });
    expect(toLogEntry(stored(fact))).toBeNull();
  });

  test.each([
    null,
    {},
    { requestId: 7, toolCallId: 'C', decision: 'allow_once' },
    { requestId: 'Q', toolCallId: 'C', decision: 'maybe' },
  ])('shows no decision with malformed data: %j', (data) => {
    const broken = { ...stored(happened.decided('A', 'Q')), data } as unknown as StoredEvent;
    expect(toExtendedLogEntry(broken)).toBeNull();
  });

  test('removes citations', () => {
    const fact = event('tool.confirmation_requested', { ...CALL, title: CITED, requestId: 'Q' }, 'A', 1);
    expect(toExtendedLogEntry(stored(fact))).toMatchObject({ title: 'so it is' });
  });

  test.each([
    ['assistant.text_added', { text: 'x', step: 'two' }],
    ['assistant.text_added', { text: 'x', step: 1.5 }],
    ['tool.confirmation_requested', { ...CALL, requestId: 'Q', title: 7 }],
    ['file.changed', { fileId: 'F', name: null, kind: 'folder', action: 'eaten' }],
    ['thread.status_entered', { status: 'RESCHEDULING', voidedStepId: {} }],
    ['message.added', { text: 'hi', fileIds: [7] }],
    ['run.failed', { error: { message: 'x', code: 7 }, durationMs: null }],
  ])('omits malformed fields: %s %j', (type, data) => {
    const fact = { type, data, runId: 'A', attempt: 1 } as unknown as ThreadEvent;
    expect(toExtendedLogEntry(stored(fact))).toEqual(toLogEntry(stored(fact)));
  });

  test('shows unknown, broken and private events without optional fields', () => {
    const unknown = { ...PLACE, type: 'run.teleported', data: null, runId: 'A', attempt: 1, schemaVersion: 1 };
    const broken = { ...stored(happened.message('A')), data: null } as unknown as StoredEvent;
    for (const each of [{ ...unknown, public: true }, { ...unknown, public: false }, broken])
      expect(toExtendedLogEntry(each)).toEqual(toLogEntry(each));
  });
});
