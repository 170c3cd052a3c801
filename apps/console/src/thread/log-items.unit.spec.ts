import type { ThreadEventLogEntry as Entry } from '#contract';
import { toLogItems, type LogItem } from './log-items.ts';

let ids: number;
beforeEach(() => (ids = 0));

const entry = (type: Entry['type'], content: string, more: Partial<Entry> = {}): Entry => ({
  id: `01JD${String(++ids).padStart(22, '0')}`,
  ...{ type, content, occurredAt: '2026-11-22T09:00:00.000Z', runId: 'A', status: 'available' },
  ...{ durationMs: null, tokens: null, ...more },
});
const piece = (text: string, runId = 'A') => entry('agent.message.delta', text, { runId });
const thought = (text: string) => entry('agent.thinking.delta', text);
const mark = (status: string) => entry('session.status', status);
const usage = () => entry('usage.updated', '{"inputTokens":3,"outputTokens":2}', { tokens: 5 });
const call = { toolCallId: 'call', toolName: 'send' };
const started = (more: Partial<Entry> = {}) =>
  entry('tool.use.started', 'Send a note', { ...call, toolInput: { to: 'me' }, ...more });
const asked = () => entry('tool.confirmation.required', 'request', { ...call, toolInput: { to: 'me' } });
const completed = (status: Entry['status'] = 'available') =>
  entry('tool.use.completed', 'sent', { ...call, durationMs: 7, status });
const failed = (content = 'cancelled') => entry('run.failed', content, { status: 'error', durationMs: 9 });

const texts = (items: LogItem[]) =>
  items.flatMap((item) => (item.kind === 'message' || item.kind === 'thinking' ? [[item.text, item.state]] : []));
const tools = (items: LogItem[]) => items.filter((item) => item.kind === 'tool');

describe('a message', () => {
  it('is its pieces, joined, from the first of them on', () => {
    const items = toLogItems([piece('He'), piece('llo')]);
    expect(items).toEqual([
      {
        kind: 'message',
        id: '01JD0000000000000000000001',
        at: '2026-11-22T09:00:00.000Z',
        runId: 'A',
        text: 'Hello',
        state: 'open',
      },
    ]);
  });

  it.each([
    ['its usage', [usage()], 'whole'],
    ['a tool', [started()], 'whole'],
    ['a question', [asked()], 'whole'],
    ['the end of its Run', [entry('run.completed', 'A')], 'whole'],
    ['the loss of its worker', [mark('RESCHEDULING')], 'void'],
    ['the end of its Run before it was whole', [failed()], 'cut'],
    ['another status, which ends nothing', [mark('RUNNING')], 'open'],
    ['a file, which ends nothing', [entry('file.changed', 'F')], 'open'],
  ])('ends with %s', (_, then, state) => {
    expect(texts(toLogItems([piece('one'), ...then]))).toEqual([['one', state]]);
  });

  it('that was stored before the worker was lost stays, and the next one is another', () => {
    const items = toLogItems([piece('kept'), usage(), piece('lost'), mark('RESCHEDULING'), piece('again')]);
    expect(texts(items)).toEqual([
      ['kept', 'whole'],
      ['lost', 'void'],
      ['again', 'open'],
    ]);
  });

  it('stays when the next Run was waiting behind its own', () => {
    const items = toLogItems([piece('said'), entry('run.completed', 'A'), mark('RESCHEDULING'), piece('next', 'B')]);
    expect(texts(items)).toEqual([
      ['said', 'whole'],
      ['next', 'open'],
    ]);
  });

  it('is not mixed with what was thought meanwhile, which is void with it', () => {
    const items = toLogItems([thought('h'), piece('He'), thought('m'), piece('llo'), mark('RESCHEDULING')]);
    expect(texts(items)).toEqual([
      ['hm', 'void'],
      ['Hello', 'void'],
    ]);
  });
});

describe('a tool call', () => {
  it('is one item, from the question to the result', () => {
    const seen = [asked(), started(), completed()].map((_, i, all) => tools(toLogItems(all.slice(0, i + 1))));
    expect(seen.map(([tool]) => tool)).toMatchObject([
      { state: 'asked', requestId: 'request', input: { to: 'me' }, title: null },
      { state: 'running', requestId: 'request', title: 'Send a note' },
      { state: 'done', summary: 'sent', durationMs: 7, input: { to: 'me' } },
    ]);
    expect(seen.map(({ length }) => length)).toEqual([1, 1, 1]);
  });

  it('that was refused or failed says so', () => {
    expect(tools(toLogItems([asked(), completed('error')]))).toMatchObject([{ state: 'failed', title: null }]);
  });

  it.each([
    ['was asked for', [asked()], 'cut'],
    ['was started', [started()], 'cut'],
    ['was done', [started(), completed()], 'done'],
    ['is of another Run', [started({ runId: 'B' })], 'running'],
  ])('that %s when its Run ended', (_, before, state) => {
    expect(tools(toLogItems([...before, failed()]))).toMatchObject([{ state }]);
  });

  it('whose beginning is not held is shown by what is', () => {
    expect(toLogItems([completed()])).toMatchObject([{ kind: 'tool', input: null, summary: 'sent', state: 'done' }]);
  });
});

test('what else happens is an item each', () => {
  const items = toLogItems([
    entry('user.message', 'Hi'),
    entry('run.started', 'A'),
    usage(),
    entry('usage.updated', 'not JSON', { tokens: 4 }),
    entry('session_files.updated', 'F1'),
    entry('file.changed', 'F2'),
    mark('archived'),
    failed('The model provider did not answer.'),
    entry('session.status', '', { status: 'unsupported' }),
  ]);
  expect(items).toMatchObject([
    { kind: 'user', text: 'Hi' },
    { kind: 'started', runId: 'A' },
    { kind: 'usage', tokens: 5, inputTokens: 3, outputTokens: 2 },
    { kind: 'usage', tokens: 4, inputTokens: null, outputTokens: null },
    { kind: 'file', fileId: 'F1', isAttachment: true },
    { kind: 'file', fileId: 'F2', isAttachment: false },
    { kind: 'status', status: 'archived' },
    { kind: 'ended', message: 'The model provider did not answer.', durationMs: 9 },
    { kind: 'unsupported' },
  ]);
});

test('nothing of the entries is changed: the same entries say the same again', () => {
  const entries = [asked(), started(), piece('a'), piece('b'), mark('RESCHEDULING')];
  expect(toLogItems(entries)).toEqual(toLogItems(entries));
});
