import type { Command } from './commands.ts';
import { command, LIMITS, newRun } from './decider.testing.ts';
import { decide } from './decide.ts';
import { EVENT_TYPES } from './event-types.ts';
import type { StoredEvent, ThreadEventType } from './events.ts';
import type { FailureCause } from './failure-cause.ts';
import { incrementUlid } from './ids.ts';
import { showEvent } from './log-entry.ts';
import { isRejection } from './rejection.ts';
import { runError } from './run-errors.ts';
import { initialState, type ThreadState } from './state.ts';

const THREAD = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const [A, B, C, D, E] = ['01A', '01B', '01C', '01D', '01E'].map((start) => start.padEnd(26, '0')) as RunIds;
type RunIds = [string, string, string, string, string];

const CALL = { toolCallId: 'call 1', toolName: 'look', title: 'Look it up', toolInput: { deep: [1, { at: null }] } };
const ASKED = { toolCallId: 'call 2', toolName: 'write', title: 'Write it down', toolInput: {} };
const done = { toolName: 'look', summary: 'found', result: 'all that was found' };

/** A Thread with every type of event, in every variant that this release writes. */
const STORY: Command[][] = [
  [command.create(), { ...command.message(A), requestId: 'mine', fileIds: ['01F'.padEnd(26, '0')] }],
  [command.claim(A), command.start(A)],
  [
    {
      type: 'record',
      runId: A,
      attempt: 1,
      facts: [
        { type: 'assistant.thinking_added', data: { text: 'hm' } },
        { type: 'assistant.text_added', data: { text: 'I look.' } },
        { type: 'assistant.message_added', data: { text: 'I look.', toolCalls: [CALL, ASKED] } },
        { type: 'usage.recorded', data: { inputTokens: 20, outputTokens: 3 } },
        { type: 'tool.started', data: CALL },
        { type: 'file.changed', data: { fileId: '01F'.padEnd(26, '1') } },
        { type: 'tool.completed', data: { ...done, toolCallId: 'call 1', outcome: 'ok', durationMs: 7 } },
        { type: 'tool.confirmation_requested', data: { ...ASKED, requestId: 'Q1' } },
        { type: 'tool.confirmation_requested', data: { ...ASKED, requestId: 'Q2' } },
      ],
    },
    command.wait(A, ['Q1', 'Q2']),
  ],
  [command.decide('Q1'), command.decide('Q2', 'reject_once')],
  [command.claim(A, 2), command.start(A, 2)],
  [
    {
      type: 'record',
      runId: A,
      attempt: 2,
      facts: (['error', 'refused', 'unknown'] as const).map((outcome) => {
        return { type: 'tool.completed', data: { ...done, toolCallId: 'call 2', outcome, durationMs: null } };
      }),
    },
  ],
  [command.reclaim(A, 2)],
  [command.claim(A, 3), command.reclaim(A, 3)],
  [command.claim(A, 4), command.handOver(A, 4)],
  [command.claim(A, 5), command.start(A, 5), command.message(B, 'enqueue')],
  [
    {
      type: 'complete_run',
      runId: A,
      attempt: 5,
      finalOutput: { text: 'Found.', warnings: [{ code: 'unresolved_provider_citation', count: 2 }] },
    },
  ],
  [command.interrupt(B), command.retry(B, C)],
  [command.claim(C), command.start(C), command.complete(C)],
  [command.message(D), command.claim(D), command.fail(D, runError('provider_auth'))],
  [
    { type: 'attach_file', fileId: 'F' },
    { type: 'detach_file', fileId: 'F' },
    { type: 'delete_file', fileId: 'F' },
  ],
  [{ type: 'archive' }, { type: 'unarchive' }],
  [command.message(E), command.expire(E, 'queue', { attempt: 0 })],
  [command.retry(E, '01G'.padEnd(26, '0')), command.claim('01G'.padEnd(26, '0')), command.start('01G'.padEnd(26, '0'))],
  [command.message('01H'.padEnd(26, '0'), 'interrupt'), command.terminate()],
];

/** Types that were added later. Their events follow the story, because its versions are fixed by the golden files. */
const LATER: Command[][] = [[command.create()], [command.setTitle('Mine')], [command.setTitle(null)]];

export const LATER_TYPES: readonly ThreadEventType[] = ['thread.title_set'];

const MADE = { name: 'sum.csv', kind: 'artifact' } as const;

const ANSWERED_503: FailureCause = {
  ...{ source: 'provider', name: 'api.example', status: 503, type: 'overloaded_error', code: 'overloaded' },
  ...{ requestId: 'req_1', message: 'The server is overloaded.', waitedMs: 120 },
};
const TOOL_FAILED: FailureCause = {
  ...{ source: 'tool_server', name: 'files', exitCode: 1, signal: 'SIGKILL', message: 'The program ended.' },
};
const WORKER_LOST: FailureCause = { source: 'worker', name: 'worker-1', step: 'Look it up' };

/** A Thread whose events have the optional fields. Events of releases that did not know them lack them (docs/adr/0001). */
const ADDITIONS: Command[][] = [
  [
    command.create({ externalRef: { value: 'ticket 7', tokenId: '01T'.padEnd(26, '0') } }),
    {
      ...command.message(A),
      fileIds: ['01F'.padEnd(26, '0')],
      fileNames: new Map([['01F'.padEnd(26, '0'), 'a.pdf']]),
      run: { ...newRun(A), limits: { ...LIMITS, providerRetryMs: 900_000 } },
    },
  ],
  [command.claim(A), command.start(A)],
  [
    {
      type: 'record',
      runId: A,
      attempt: 1,
      facts: [
        {
          type: 'assistant.message_added',
          data: {
            text: 'I look.',
            toolCalls: [{ ...CALL, toolInput: {}, invalidInput: '{"deep": [1, ' }],
            continuation: [{ type: 'thinking', thinking: 'hm', signature: 'signed' }],
            usage: { inputTokens: 20, outputTokens: 3, cachedInputTokens: 12 },
          },
        },
        {
          type: 'assistant.message_added',
          data: { text: 'I look.', toolCalls: [CALL], usage: { inputTokens: 20, outputTokens: 3 } },
        },
        { type: 'assistant.message_added', data: { text: 'It is.', toolCalls: [], thinking: 'hm', step: 2 } },
        {
          type: 'assistant.message_added',
          data: { text: 'It is.', toolCalls: [], model: { name: 'small', fallback: 1 } },
        },
        { type: 'usage.recorded', data: { inputTokens: 20, outputTokens: 3, cachedInputTokens: 12 } },
        { type: 'tool.confirmation_requested', data: { ...ASKED, requestId: 'Q1', destructive: true } },
        {
          type: 'tool.completed',
          data: { ...done, toolCallId: 'call 1', outcome: 'ok', durationMs: 7, fileIds: ['01F'.padEnd(26, '1')] },
        },
        { type: 'file.changed', data: { fileId: '01F'.padEnd(26, '1'), action: 'created', ...MADE } },
        { type: 'files.updated', data: { fileId: '01F'.padEnd(26, '1'), change: 'attached', ...MADE } },
        { type: 'file.changed', data: { fileId: '01F'.padEnd(26, '1'), action: 'changed', ...MADE } },
        { type: 'assistant.thinking_added', data: { text: 'hm', step: 3 } },
        { type: 'assistant.text_added', data: { text: 'It', step: 3 } },
      ],
    },
    { ...command.reclaim(A), openStep: 3 } as Command,
  ],
  [
    { type: 'detach_file', fileId: '01F'.padEnd(26, '0'), name: 'a.pdf', kind: 'attachment' },
    { type: 'delete_file', fileId: '01F'.padEnd(26, '1'), ...MADE },
  ],
  [command.claim(A, 2), command.start(A, 2)],
  [
    {
      type: 'record',
      runId: A,
      attempt: 2,
      facts: [
        {
          type: 'tool.completed',
          data: { ...done, toolCallId: 'call 2', outcome: 'error', durationMs: 7, cause: TOOL_FAILED },
        },
      ],
    },
    { ...command.reclaim(A, 2), cause: ANSWERED_503 } as Command,
  ],
  [command.claim(A, 3), { ...command.reclaim(A, 3), cause: WORKER_LOST } as Command],
  [command.claim(A, 4), { ...command.fail(A, runError('provider_unavailable'), 4), cause: ANSWERED_503 } as Command],
  [command.claim(A, 5), command.handOver(A, 5)],
  [
    command.claim(A, 6),
    { ...command.fail(A, runError('provider_unavailable'), 6), turn: { circuit: 'c', waitMs: 3_000 } } as Command,
  ],
  [command.claim(A, 7), { ...command.fail(A, runError('provider_auth'), 7), cause: ANSWERED_503 } as Command],
];

/** The optional fields of each type, as paths. */
const OPTIONAL_FIELDS = {
  'assistant.message_added': ['continuation', 'usage', 'thinking', 'step', 'model'],
  'assistant.text_added': ['step'],
  'assistant.thinking_added': ['step'],
  'file.changed': ['name', 'kind', 'action'],
  'files.updated': ['name', 'kind'],
  'run.claimed': ['streak'],
  'run.failed': ['cause'],
  'run.queued': ['limits.providerRetryMs'],
  'run.requeued': ['cause', 'streak'],
  'thread.created': ['externalRef'],
  'thread.status_entered': ['voidedStepId', 'retryAt'],
  'tool.completed': ['fileIds', 'cause'],
  'tool.confirmation_requested': ['destructive'],
  'usage.recorded': ['cachedInputTokens'],
} satisfies Partial<Record<ThreadEventType, string[]>>;

export const ADDED_TO = Object.keys(OPTIONAL_FIELDS) as (keyof typeof OPTIONAL_FIELDS)[];

/** Returns the events that have optional fields. */
export function describeAdditions(): StoredEvent[] {
  const optional: Partial<Record<ThreadEventType, string[]>> = OPTIONAL_FIELDS;
  return tell(ADDITIONS).filter(({ type, data }) => optional[type]?.some((path) => hasField(data, path)));
}

function hasField(data: object, path: string): boolean {
  let at: unknown = data;
  for (const name of path.split('.')) at = (at as Record<string, unknown>)[name];
  return at !== undefined;
}

export function describeStory(): StoredEvent[] {
  const later = tell(LATER).filter(({ type }) => LATER_TYPES.includes(type));
  return [...tell(STORY), ...later];
}

function tell(story: Command[][]): StoredEvent[] {
  const events: StoredEvent[] = [];
  let state: ThreadState = initialState;
  let id = '01J00000000000000000000000';
  story.forEach((commands, minute) => {
    const decision = decide(commands, state, new Date(minute * 60_000).toISOString());
    if (isRejection(decision)) throw new Error(`${JSON.stringify(commands)} was refused: ${decision.rejected}`);
    state = decision.state;
    for (const event of decision.events) {
      id = incrementUlid(id);
      const place = {
        threadId: THREAD,
        version: events.length + 1,
        id,
        schemaVersion: EVENT_TYPES[event.type].schemaVersion,
      };
      events.push({ ...event, ...place, public: showEvent(event) !== null });
    }
  });
  return events;
}
