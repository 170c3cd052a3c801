import type { Message, MessagePart } from '#client';
import { CommandError } from '../exit-codes.ts';
import { findFile } from './files.ts';
import { parseDecision, parseInput } from './input.ts';
import { Renderer } from './render.ts';

const CREATED = { createdAt: '2026-11-28T12:00:00.000Z' };
type AgentMessage = Extract<Message, { role: 'agent' }>;
type ToolCall = Extract<MessagePart, { type: 'tool_call' }>;

const user = (text: string): Message => ({
  ...{ id: `M ${text}`, role: 'user', runId: 'R', parts: [{ type: 'text', text, state: 'done' }] },
  ...CREATED,
});
const agent = (parts: MessagePart[], more: Partial<AgentMessage> = {}): Message => ({
  ...{ id: 'R', role: 'agent', runId: 'R', parts, status: 'running', error: null },
  ...CREATED,
  ...more,
});
const text = (words: string, stepId = 'S'): MessagePart => ({ type: 'text', text: words, state: 'streaming', stepId });
const thinking = (words: string): MessagePart => ({ type: 'thinking', text: words, state: 'done', stepId: 'S' });
const call = (more: Partial<ToolCall>): ToolCall => ({
  ...{ type: 'tool_call', toolCallId: 'C', toolName: 'send', title: null, toolInput: { to: 'ada' }, state: 'running' },
  ...{ summary: null, durationMs: null, approval: null },
  ...more,
});
const file = (name: string, fileId = name): MessagePart => ({
  ...{ type: 'file', fileId, name, kind: 'artifact', action: 'created' },
});

/** Returns the text that each state adds to the screen. */
const shown = (states: Message[][], renderer = new Renderer(false)): string[] =>
  states.map((messages) => renderer.render(messages));

describe('the renderer', () => {
  test('shows each delta once, and ends the line when the answer ends', () => {
    const states = ['He', 'Hello', 'Hello'].map((words) => [user('Hi'), agent([text(words)])]);
    const done = [user('Hi'), agent([text('Hello')], { status: 'completed' })];
    expect(shown([...states, done, done])).toEqual(['> Hi\nHe', 'llo', '', '\n', '']);
  });

  test('does not show a typed message again', () => {
    const renderer = new Renderer(false);
    renderer.expectTyped('Hi');
    expect(shown([[user('Hi')], [user('Hi'), user('Other')]], renderer)).toEqual(['', '> Other\n']);
  });

  test('dims thinking, if the terminal has colours', () => {
    const messages = [agent([thinking('Hm.'), text('Yes')])];
    expect(shown([messages], new Renderer(true))).toEqual(['\u001b[2mHm.\u001b[22m\nYes']);
    expect(shown([messages])).toEqual(['Hm.\nYes']);
  });

  test('says that the text of an interrupted step does not count', () => {
    const states = [[agent([text('Hal')])], [agent([])], [agent([text('Hello', 'S2')])]];
    expect(shown(states)).toEqual([
      'Hal',
      '\n(The step was interrupted and runs again. Ignore its text above.)\n',
      'Hello',
    ]);
  });

  test('shows a line for each state of a tool call', () => {
    const asks = { requestId: 'Q', state: 'pending' } as const;
    const states = [
      call({ state: 'waiting', approval: asks }),
      call({ approval: { ...asks, state: 'allowed' } }),
      call({ state: 'completed', summary: 'Sent.\nTwice.', approval: { ...asks, state: 'allowed' } }),
    ];
    expect(shown(states.map((part) => [agent([part])]))).toEqual([
      '[send] needs your approval: {"to":"ada"}\n',
      '[send] allowed\n',
      '[send] completed: Sent. Twice.\n',
    ]);
    const rejected = call({ state: 'failed', approval: { ...asks, state: 'rejected' } });
    const stopped = call({ state: 'stopped', approval: null, title: 'Send' });
    expect(shown([[agent([rejected])]])).toEqual(['[send] rejected {"to":"ada"}\n']);
    expect(shown([[agent([stopped])]])).toEqual(['[send, Send] stopped; it may have taken effect {"to":"ada"}\n']);
  });

  test('shortens arguments, but not those that a person decides about', () => {
    const toolInput = { text: 'x'.repeat(1_000) };
    const approval = { requestId: 'Q', state: 'pending' } as const;
    expect(shown([[agent([call({ toolInput })])]])[0]!.length).toBeLessThan(300);
    expect(shown([[agent([call({ toolInput, state: 'waiting', approval })])]])[0]).toContain('x'.repeat(1_000));
  });

  test('shows the names of files, and how the Run ended', () => {
    const error = { code: 'provider_auth', message: 'No\nkey.', retryable: false };
    const states: [Partial<AgentMessage>, string][] = [
      [{ status: 'failed', error }, 'Error: No key. (/retry tries again)\n'],
      [{ status: 'cancelled' }, 'Stopped.\n'],
      [{ status: 'expired' }, 'The Run has expired.\n'],
    ];
    for (const [end, told] of states) {
      expect(shown([[agent([file('a.md')], end)]])).toEqual([`[file] a.md (/save a.md)\n${told}`]);
    }
  });

  test('shows escape sequences of the Agent instead of sending them to the terminal', () => {
    const hostile = '\u001b[2J\u001b]0;x\u0007\u009b1A\r\u202e';
    const approval = { requestId: 'Q', state: 'pending' } as const;
    const parts = [
      ...[thinking(hostile), text(hostile), file(hostile)],
      call({ toolName: hostile, title: hostile, toolInput: { [hostile]: hostile }, state: 'waiting', approval }),
      call({ toolCallId: 'D', state: 'failed', summary: hostile }),
    ];
    const error = { code: null, message: hostile, retryable: null };
    const [screen = ''] = shown([[user(hostile), agent(parts, { status: 'failed', error })]]);
    expect(screen.replaceAll('\n', '')).toMatch(/^[\x20-\x7e]+$/);
    expect(screen).toContain('\\u001b[2J');
  });
});

test.each([
  ['Hello', { type: 'message', text: 'Hello' }],
  ['/stop', { type: 'command', name: 'stop', rest: '' }],
  ['/save  my report.pdf ', { type: 'command', name: 'save', rest: 'my report.pdf' }],
  ['//stop', { type: 'message', text: '/stop' }],
  ['/etc/hosts is empty', { type: 'unknown', word: '/etc/hosts' }],
  ['/constructor', { type: 'unknown', word: '/constructor' }],
  ['/stop\nnow', { type: 'message', text: '/stop\nnow' }],
])('parses %j', (typed, input) => {
  expect(parseInput(typed)).toEqual(input);
});

test.each([
  ['y', 'allow_once'],
  [' YES ', 'allow_once'],
  ['n', 'reject_once'],
  ['no', 'reject_once'],
  ['', null],
  ['yesterday', null],
])('takes %j as the decision %s', (typed, decision) => {
  expect(parseDecision(typed)).toBe(decision);
});

describe('/save', () => {
  const messages = [
    agent([file('a.md', '1'), file('my report.pdf', '2'), file('../../.profile', '3')]),
    agent([file('a.md', '4')]),
  ];

  test.each([
    ['a.md', '4', 'a.md'],
    ['1', '1', '1'],
    ['my report.pdf', '2', 'my report.pdf'],
    ['my report.pdf docs/r.pdf', '2', 'docs/r.pdf'],
    ['../../.profile', '3', '.profile'],
  ])('%s finds the newest file, and saves it in the current directory if no path is given', (typed, fileId, path) => {
    expect(findFile(messages, typed)).toEqual({ fileId, path });
  });

  test('lists the files of the chat if none has this name', () => {
    expect(() => findFile(messages, 'b.md')).toThrow(CommandError);
    expect(() => findFile(messages, 'b.md')).toThrow(/a\.md, \.\.\/\.\.\/\.profile, my report\.pdf/);
  });
});
