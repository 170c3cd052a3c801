import { showEvent, type StoredEvent, type ThreadEvent } from '#domain';
import { foldSummaries, noSummaries } from './fold.ts';
import { DATA_NOT_FOLDED, NOT_FOLDED } from './read-page.ts';
import { emptyReplay, replay } from './replay.ts';

const at = (second: number): string => `2026-11-21T10:00:${String(second).padStart(2, '0')}.000Z`;

/** The events as a stream stores them, one a second. */
function stream(...events: Given[]): StoredEvent[] {
  return events.map(([type, data = {}, runId = null, attempt = null], i) => {
    const place = {
      threadId: 'thread',
      version: i + 1,
      id: `id${i}`,
      occurredAt: at(i),
      schemaVersion: 1,
      public: true,
    };
    return { type, data, runId, attempt, ...place } as unknown as StoredEvent;
  });
}

type Given = [type: string, data?: object, runId?: string | null, attempt?: number];

const created: Given = [
  'thread.created',
  {
    agentId: 'agent',
    organizationId: 'org',
    kind: 'pet',
    userId: 'user',
    owner: { personId: 'person', serviceTokenId: null },
  },
];
const limits = { queueMs: 1, workMs: 1, waitMs: 1, maxLosses: 3 };
const queuedData = { trigger: 'user_prompt', agentVersion: 1, limits, delayMs: 0 };
const queued: Given = ['run.queued', queuedData, 'run'];
const claimed: Given = ['run.claimed', { dispatch: 1, holder: 'worker' }, 'run', 1];
const started: Given = ['run.started', { first: true }, 'run', 1];
const message = (text: string): Given => ['message.added', { text, requestId: null, fileIds: [] }, 'run'];

const idle = {
  thread_id: 'thread',
  agent_id: 'agent',
  organization_id: 'org',
  user_id: 'user',
  kind: 'pet',
  owner_person_id: 'person',
  owner_service_token_id: null,
  status: 'IDLE',
  title: null,
  last_run_id: null,
  archived: false,
  created_at: at(0),
  updated_at: at(0),
  client_external_ref: null,
  external_ref: null,
  external_ref_token_id: null,
};

describe('the summary of a Thread', () => {
  const thread = (...given: Given[]) => foldSummaries(noSummaries, stream(created, ...given)).thread;

  test.each<[string, Given[], object]>([
    ['begins when it is created', [], {}],
    [
      'has the status that was entered',
      [['thread.status_entered', { status: 'RUNNING' }]],
      { status: 'RUNNING', updated_at: at(1) },
    ],
    ['does not move when it enters the status it has', [['thread.status_entered', { status: 'IDLE' }]], {}],
    [
      'has its title from the first message',
      [message('  First\tline \nsecond')],
      { title: 'First line', updated_at: at(1) },
    ],
    ['keeps its title', [message('First'), message('Second')], { title: 'First', updated_at: at(1) }],
    [
      'takes its title from a later message if the first has no text',
      [message(' \n '), message('Second')],
      { title: 'Second', updated_at: at(2) },
    ],
    ['has the newest Run', [queued, ['run.queued', queuedData, 'run 2']], { last_run_id: 'run 2', updated_at: at(2) }],
    ['is archived', [['thread.archived']], { archived: true, updated_at: at(1) }],
    [
      'keeps the title that is set',
      [['thread.title_set', { title: 'Mine' }], message('First')],
      { title: 'Mine', updated_at: at(1) },
    ],
    [
      'takes its title from the next message once the title is null',
      [message('First'), ['thread.title_set', { title: null }], message('Second')],
      { title: 'Second', updated_at: at(3) },
    ],
    ['gets the title that is set', [['thread.title_set', { title: 'Mine' }]], { title: 'Mine', updated_at: at(1) }],
    [
      'is no longer archived once it is unarchived',
      [['thread.archived'], ['thread.unarchived']],
      { updated_at: at(2) },
    ],
    ['does not change for a text delta', [['assistant.text_added', { text: 'x' }, 'run', 1]], {}],
    ['does not change for an unknown event', [['future.event', { status: 'IDLE' }]], {}],
  ])('%s', (_, given, changed) => {
    expect(thread(...given)).toEqual({ ...idle, ...changed });
  });

  test('has the owners and the reference that the creation names', () => {
    const owner = { personId: 'person', serviceTokenId: 'token' };
    const attributed: Given = ['thread.created', { ...(created[1] as object), owner, clientExternalRef: 'ticket' }];
    const { thread: row } = foldSummaries(noSummaries, stream(attributed, ['thread.archived']));
    const named = { owner_service_token_id: 'token', client_external_ref: 'ticket' };
    expect(row).toEqual({ ...idle, ...named, archived: true, updated_at: at(1) });
  });

  test('has the unique reference of the creation and the token that gave it', () => {
    const data = { ...(created[1] as object), externalRef: { value: 'ticket', tokenId: 'token' } };
    const { thread: row } = foldSummaries(noSummaries, stream(['thread.created', data]));
    expect(row).toEqual({ ...idle, external_ref: 'ticket', external_ref_token_id: 'token' });
  });

  test('does not exist before the creation', () => {
    expect(foldSummaries(noSummaries, stream(['thread.archived'], message('x'))).thread).toBeNull();
  });
});

const queuedRun = {
  run_id: 'run',
  thread_id: 'thread',
  status: 'queued',
  trigger: 'user_prompt',
  created_at: at(0),
  started_at: null,
  completed_at: null,
  updated_at: at(0),
  error: null,
  final_output: null,
  cause: null,
};

describe('the summary of a Run', () => {
  const run = (...given: Given[]) => foldSummaries(noSummaries, stream(queued, ...given)).runs.get('run');
  const finalOutput = { text: 'done', warnings: [] };
  const error = { code: 'internal', message: 'm', retryable: false };

  test.each<[string, Given[], object]>([
    ['begins when it is queued', [], {}],
    ['boots', [claimed], { status: 'booting', updated_at: at(1) }],
    ['runs', [claimed, started], { status: 'running', started_at: at(2), updated_at: at(2) }],
    [
      'keeps the time of its first start',
      [claimed, started, ['run.requeued', {}, 'run', 1], claimed, started],
      { status: 'running', started_at: at(2), updated_at: at(5) },
    ],
    [
      'completes with its output',
      [claimed, started, ['run.completed', { finalOutput, durationMs: 1 }, 'run', 1]],
      { status: 'completed', started_at: at(2), completed_at: at(3), updated_at: at(3), final_output: finalOutput },
    ],
    [
      'fails with its error',
      [claimed, ['run.failed', { error, durationMs: null }, 'run', 1]],
      { status: 'failed', completed_at: at(2), updated_at: at(2), error },
    ],
    [
      'has the cause of its last failed attempt',
      [
        claimed,
        ['run.requeued', { cause: { source: 'worker', name: 'w-1' } }, 'run', 1],
        claimed,
        ['run.requeued', { cause: { source: 'worker', name: 'w-2' } }, 'run', 2],
        claimed,
        ['run.requeued', {}, 'run', 3],
      ],
      { updated_at: at(6), cause: { attempt: 2, source: 'worker', name: 'w-2' } },
    ],
    [
      'is cancelled',
      [['run.cancelled', { by: null, durationMs: null }, 'run']],
      { status: 'cancelled', completed_at: at(1), updated_at: at(1) },
    ],
    [
      'expires',
      [['run.expired', { limit: 'queue', durationMs: null }, 'run']],
      { status: 'expired', completed_at: at(1), updated_at: at(1) },
    ],
    ['is not moved by what its status does not allow', [started, ['run.completed', { finalOutput }, 'run']], {}],
    [
      'is not moved after its end',
      [
        ['run.cancelled', {}, 'run'],
        ['run.failed', { error }, 'run'],
      ],
      { status: 'cancelled', completed_at: at(1), updated_at: at(1) },
    ],
    ['does not change for a text delta', [['assistant.text_added', { text: 'x' }, 'run', 1]], {}],
    ['is not moved by another Run', [['run.cancelled', {}, 'run 2']], {}],
  ])('%s', (_, given, changed) => {
    expect(run(...given)).toEqual({ ...queuedRun, ...changed });
  });
});

describe('foldSummaries', () => {
  test('does not change its input, and returns unchanged rows as the same objects', () => {
    const before = foldSummaries(noSummaries, stream(created, queued));
    const copy = structuredClone({ ...before, runs: [...before.runs] });
    const after = foldSummaries(
      before,
      stream(['run.queued', queuedData, 'run 2'], ['assistant.text_added', { text: 'x' }, 'run']),
    );
    expect({ ...before, runs: [...before.runs] }).toEqual(copy);
    expect(after.runs.get('run')).toBe(before.runs.get('run'));
    expect(foldSummaries(before, []).thread).toBe(before.thread);
  });

  test('folds a stream in parts to the same rows as in one call', () => {
    const events = stream(created, message('Hi'), queued, claimed, started, [
      'run.completed',
      { finalOutput: null },
      'run',
      1,
    ]);
    for (let cut = 0; cut <= events.length; cut++) {
      const pieces = replay(replay(emptyReplay, events.slice(0, cut)), events.slice(cut));
      expect(pieces).toEqual(replay(emptyReplay, events));
    }
  });
});

describe('data that a rebuild does not read', () => {
  const running = replay(emptyReplay, stream(created, message('Hi'), queued, claimed, started));
  /** Data that throws when it is read. */
  const unread = new Proxy(
    {},
    {
      get: (_, name) => {
        throw new Error(`its ${String(name)} was read`);
      },
    },
  );

  test.each([...NOT_FOLDED])('%s changes neither state nor summaries', (type) => {
    const [event] = stream([type, unread, 'run', 1]);
    const { state, summaries } = replay(running, [event!]);
    expect(state).toBe(running.state);
    expect(summaries).toEqual(running.summaries);
  });

  test.each([...DATA_NOT_FOLDED])('an event %s is folded, and shown or not, without its data', (type) => {
    const [event] = stream([type, unread, 'run', 1]);
    expect(() => replay(running, [event!])).not.toThrow();
    const withText = { text: '', toolInput: {}, content: '', title: '', summary: '' };
    const isShown = (data: object): boolean => showEvent({ ...event, data } as ThreadEvent) !== null;
    expect(isShown({})).toBe(isShown(withText));
  });
});
