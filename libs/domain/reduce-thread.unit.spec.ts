import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  currentRun,
  openQuestions,
  reduceThread,
  type AgentMessage,
  type Message,
  type MessageEntry,
} from './reduce-thread.ts';

let count = 0;
const entry = (type: string, content: string, more: Partial<MessageEntry> = {}): MessageEntry => {
  const place = { id: `E${++count}`, occurredAt: '2026-01-01T00:00:00.000Z', status: 'available', durationMs: null };
  return { ...place, type, content, runId: 'R', ...more };
};
const text = (content: string, more?: Partial<MessageEntry>) => entry('agent.message.delta', content, more);
const thinking = (content: string, more?: Partial<MessageEntry>) => entry('agent.thinking.delta', content, more);
const asked = (more?: Partial<MessageEntry>) => entry('user.message', 'Hello', more);
const status = (content: string, more?: Partial<MessageEntry>) => entry('session.status', content, more);
const step = (stepId: string) => ({ stepId });
const call = { toolCallId: 'C', toolName: 'look', toolInput: { deep: true } };
const request = entry('tool.confirmation.required', 'Q', { ...call, title: 'Look' });
const decided = (decision: string) => status('decided', { requestId: 'Q', toolCallId: 'C', decision });

const fold = (...entries: MessageEntry[]) => reduceThread(entries).messages;
const answer = (...entries: MessageEntry[]) => fold(...entries).find(({ role }) => role === 'agent') as AgentMessage;
const textsOf = (messages: readonly Message[]) =>
  messages.map(({ parts }) => parts.map((part) => ('text' in part ? part.text : part.type)).join('|'));

test('imports nothing and uses nothing of Node', () => {
  const source = readFileSync(join(import.meta.dirname, 'reduce-thread.ts'), 'utf8');
  expect(source).not.toMatch(/\b(import|require|process|Buffer|node:)\b/);
});

test('joins the deltas of a step, its thinking first, and starts a new text for the next step', () => {
  const { parts, ...message } = answer(
    ...[asked(), entry('run.started', 'R'), text('Hel', step('1')), thinking('Hm', step('1')), text('lo', step('1'))],
    ...[entry('usage.updated', '{}'), text('Bye', step('2'))],
  );
  expect(message).toEqual({
    ...{ id: 'R', role: 'agent', runId: 'R', createdAt: '2026-01-01T00:00:00.000Z', status: 'running', error: null },
  });
  expect(parts).toEqual([
    { type: 'thinking', text: 'Hm', state: 'done', stepId: '1' },
    { type: 'text', text: 'Hello', state: 'done', stepId: '1' },
    { type: 'text', text: 'Bye', state: 'streaming', stepId: '2' },
  ]);
});

test('removes the text of a voided step, and keeps the rest of the message', () => {
  const kept = [asked(), text('I look.', step('1')), entry('tool.use.started', 'Look', call), text('No', step('2'))];
  expect(textsOf(fold(...kept, status('RESCHEDULING', { voidedStepId: '2' })))).toEqual(['Hello', 'I look.|tool_call']);
  // Of an earlier release: the open text is void, a finished one is not.
  expect(textsOf(fold(text('Half'), status('RESCHEDULING')))).toEqual(['']);
  expect(textsOf(fold(text('Whole'), entry('usage.updated', '{}'), status('RESCHEDULING')))).toEqual(['Whole']);
});

test.each<[string, MessageEntry[], string, string | undefined]>([
  ['started', [entry('tool.use.started', 'Look', call)], 'running', undefined],
  ['requested', [request], 'waiting', 'pending'],
  ['allowed', [request, decided('allow_once')], 'running', 'allowed'],
  ['rejected', [request, decided('reject_once')], 'failed', 'rejected'],
  ['withdrawn', [request, entry('run.failed', 'cancelled')], 'stopped', 'withdrawn'],
  ['completed', [request, decided('allow_once'), entry('tool.use.completed', 'Seen', call)], 'completed', 'allowed'],
  ['failed', [entry('tool.use.completed', 'Bad', { ...call, status: 'error' })], 'failed', undefined],
  ['cut', [entry('tool.use.started', 'Look', call), entry('run.failed', 'expired')], 'stopped', undefined],
])('shows a call that was %s', (_, entries, state, approval) => {
  const { parts } = answer(...entries);
  expect(parts).toHaveLength(1);
  expect(parts[0]).toMatchObject({ type: 'tool_call', toolCallId: 'C', toolName: 'look', state });
  expect((parts[0] as { approval: { state: string } | null }).approval?.state).toBe(approval);
});

test.each<[MessageEntry, Partial<AgentMessage>]>([
  [entry('run.completed', 'R'), { status: 'completed', error: null }],
  [entry('run.failed', 'cancelled'), { status: 'cancelled', error: null }],
  [entry('run.failed', 'expired'), { status: 'expired', error: null }],
  [
    entry('run.failed', 'cancelled', { error: { code: 'internal', retryable: true } }),
    { status: 'failed', error: { code: 'internal', message: 'cancelled', retryable: true } },
  ],
  [entry('run.failed', 'Oh'), { status: 'failed', error: { code: null, message: 'Oh', retryable: null } }],
])('ends with its Run: %j', (end, expected) => {
  expect(answer(text('Half'), end)).toMatchObject({ ...expected, parts: [{ text: 'Half', state: 'done' }] });
  // A Run that ended before it started has an empty answer.
  expect(answer(end)).toMatchObject({ ...expected, parts: [] });
});

test('shows an artifact once, even if more happens to it in the Run', () => {
  const file = { name: 'a.txt', kind: 'artifact' } as const;
  const created = [
    entry('file.changed', 'F', { ...file, action: 'created' }),
    entry('session_files.updated', 'F', { ...file, action: 'attached' }),
    entry('file.changed', 'F', { ...file, action: 'changed' }),
  ];
  expect(answer(...created).parts).toEqual([{ type: 'file', fileId: 'F', ...file, action: 'created' }]);
  const deleted = entry('session_files.updated', 'F', { ...file, action: 'deleted' });
  expect(answer(...created, deleted).parts).toEqual([{ type: 'file', fileId: 'F', ...file, action: 'deleted' }]);
});

test('names the files of a message by the entries before it', () => {
  const attach = (content: string, action: 'attached' | 'detached') =>
    entry('session_files.updated', content, { runId: null, name: `${content}.txt`, kind: 'attachment', action });
  const before = reduceThread([attach('F', 'attached'), attach('G', 'attached'), attach('G', 'detached')]);
  expect(before.attached?.map(({ name }) => name)).toEqual(['F.txt']);
  const { messages, attached } = reduceThread([asked({ fileIds: ['F', 'X'] })], before);
  expect(attached).toEqual([]);
  expect(messages[0]?.parts.slice(1)).toEqual([
    { type: 'file', fileId: 'F', name: 'F.txt', kind: 'attachment', action: 'attached' },
    { type: 'file', fileId: 'X', name: null, kind: 'attachment', action: 'attached' },
  ]);
});

test('puts an answer after its message, and a retry before the messages that wait', () => {
  const first = [asked({ runId: 'A' }), asked({ runId: 'B' })];
  const ran = [entry('run.started', 'A', { runId: 'A' }), entry('run.failed', 'Oh', { runId: 'A' })];
  const order = (...entries: MessageEntry[]) => fold(...entries).map(({ role, runId }) => `${role} ${runId}`);
  expect(order(...first, ...ran)).toEqual(['user A', 'agent A', 'user B']);
  const retried = [asked({ runId: 'A' }), ...ran, asked({ runId: 'B' }), entry('run.started', 'A2', { runId: 'A2' })];
  expect(order(...retried)).toEqual(['user A', 'agent A', 'agent A2', 'user B']);
});

test('keeps the object of each message and part that an entry does not change', () => {
  const view = reduceThread([asked(), text('Hello', step('1')), entry('tool.use.started', 'Look', call)]);
  for (const none of [status('RUNNING'), entry('usage.updated', '{}'), decided('allow_once')])
    expect(reduceThread([none], view)).toBe(view);
  const next = reduceThread([entry('tool.use.completed', 'Seen', call)], view);
  expect(next.messages[0]).toBe(view.messages[0]);
  expect(next.messages[1]).not.toBe(view.messages[1]);
  expect(next.messages[1]?.parts[0]).toBe(view.messages[1]?.parts[0]);
  expect(view.messages[1]?.parts[1]).toMatchObject({ state: 'running' });
});

const later = (runId: string) => asked({ runId });
test.each<[string, MessageEntry[], ReturnType<typeof currentRun>]>([
  ['nothing', [], null],
  ['a message', [asked()], { id: 'R', status: 'queued' }],
  [
    'an answer before a queued message',
    [asked(), entry('run.started', 'R'), later('Q')],
    { id: 'R', status: 'running' },
  ],
  ['a question', [asked(), request], { id: 'R', status: 'waiting_input' }],
  ['a decided question', [asked(), request, decided('allow_once')], { id: 'R', status: 'running' }],
  ['an answer that ended', [asked(), entry('run.failed', 'cancelled')], { id: 'R', status: 'cancelled' }],
  ['a message after it', [asked(), entry('run.completed', 'R'), later('Q')], { id: 'Q', status: 'queued' }],
])('the current Run after %s', (_, entries, expected) => {
  expect(currentRun(fold(...entries))).toEqual(expected);
});

test('lists the questions that no one has decided, and adds the tokens of the steps', () => {
  const other = entry('tool.confirmation.required', 'Q2', { ...call, toolCallId: 'C2' });
  const entries = [asked(), request, other, decided('reject_once')];
  const usage = [1, 2].map((n) => entry('usage.updated', `{"inputTokens":${n},"outputTokens":${10 * n}}`));
  const state = reduceThread([...entries, ...usage]);
  const { toolName, toolInput } = call;
  expect(openQuestions(state.messages)).toEqual([
    { requestId: 'Q2', runId: 'R', toolCallId: 'C2', toolName, title: null, toolInput },
  ]);
  expect(state.usage).toEqual({ inputTokens: 3, outputTokens: 30 });
  expect(reduceThread([asked()], state).usage).toBe(state.usage);
});
