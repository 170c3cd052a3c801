import type { TranscriptMessage } from '../harness.ts';
import { REASONING_FIELDS, toContinuation, type AnswerBlock } from './continuation.ts';
import { STOP_MARK, toFunctionTools, toPrompt } from './prompt.ts';
import { manifestWith } from './provider.testing.ts';
import type { ShownImage } from './shown-files.ts';
import type { ModelChoice } from './model-settings.ts';

const modelOf = (more: Partial<ModelChoice>) => manifestWith(more).model as ModelChoice;
const anthropic = modelOf({ provider: 'anthropic' });
const openAi = modelOf({});
const bytes = Buffer.from('png');
const images = new Map<string, ShownImage>([['image-1', { path: 'artifacts/a.png', mediaType: 'image/png', bytes }]]);

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;
const user = (text: string, ...fileIds: string[]): TranscriptMessage => ({ role: 'user', text, fileIds });
const call = (toolCallId: string, toolName = 'look') => ({ toolCallId, toolName, title: 'Look', toolInput: { at: 1 } });
const asked = (text: string, ...toolCallIds: string[]): TranscriptMessage => ({
  role: 'assistant',
  text,
  toolCalls: toolCallIds.map((toolCallId) => call(toolCallId)),
});
const result = (toolCallId: string, more: Partial<ToolMessage> = {}): ToolMessage => ({
  role: 'tool',
  toolCallId,
  toolName: 'look',
  outcome: 'ok',
  result: 'seen',
  ...more,
});
const promptOf = (model: ModelChoice, transcript: TranscriptMessage[], instructions = '') =>
  toPrompt({ model, instructions, transcript, images });

describe('the prompt', () => {
  it('has instructions, messages, calls by our ids, and results by their outcome', () => {
    const outcomes = ['ok', 'error', 'refused', 'unknown'] as const;
    const results = outcomes.map((outcome, i) => result(`call-${i}`, { outcome }));
    const prompt = promptOf(
      modelOf({ quirks: { callIds: 'stored' } }),
      [user('Look'), asked('Yes', 'call-0', 'call-1', 'call-2', 'call-3'), ...results],
      'Be kind',
    );
    expect(prompt.slice(0, 2)).toEqual([
      { role: 'system', content: 'Be kind' },
      { role: 'user', content: [{ type: 'text', text: 'Look' }] },
    ]);
    expect(prompt[2]?.content).toEqual([
      { type: 'text', text: 'Yes' },
      ...[0, 1, 2, 3].map((i) => ({
        type: 'tool-call',
        toolCallId: `call-${i}`,
        toolName: 'look',
        input: { at: 1 },
      })),
    ]);
    expect(prompt.slice(3).map(({ content }) => content[0])).toMatchObject(
      ['text', 'error-text', 'error-text', 'error-text'].map((type) => ({ output: { type, value: 'seen' } })),
    );
  });

  it('has no texts that providers refuse', () => {
    const failed = result('call-1', { outcome: 'error', result: ' \n' });
    const transcript = [user(' '), asked(''), user('x'), asked(' \n', 'call-1'), failed];
    const prompt = promptOf(anthropic, transcript, ' ');
    expect(prompt[3]?.content).toMatchObject([{ output: { type: 'error-text', value: '(an empty result)' } }]);
    expect(prompt.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'tool']);
    expect(prompt[0]?.content).toEqual([{ type: 'text', text: '(an empty message)' }]);
    expect(prompt[2]?.content).toMatchObject([{ type: 'tool-call' }]);
  });

  it('has a user message after a stopped one, so that it never ends with text of the model', () => {
    const stopped = (text: string): TranscriptMessage => ({ role: 'assistant', text, toolCalls: [], stopped: true });
    const textsOf = (prompt: ReturnType<typeof promptOf>) =>
      prompt.flatMap(({ content }) => (content as { text: string }[]).map(({ text }) => text)).join('\n\n');
    const half = { role: 'assistant', content: [{ type: 'text', text: 'half' }] };
    for (const model of [openAi, anthropic]) {
      const [said, ...asked] = promptOf(model, [user('Look'), stopped('half'), user('And?')]).slice(1);
      expect(said).toMatchObject(half);
      expect(textsOf(asked)).toBe(`${STOP_MARK}\n\nAnd?`);
      // The Run is resumed.
      expect(textsOf(promptOf(model, [user('Look'), stopped('half')]).slice(2))).toBe(`${STOP_MARK}\n\nGo on.`);
      // Nobody saw anything.
      expect(promptOf(model, [user('Look'), stopped(' \n')])).toHaveLength(1);
    }
  });

  it('has only names that providers take, in call and result alike', () => {
    const name = `what.is this?${'x'.repeat(80)}`;
    const transcript: TranscriptMessage[] = [
      { role: 'assistant', text: '', toolCalls: [call('call-1', name)] },
      result('call-1', { toolName: name, outcome: 'error' }),
    ];
    const names = promptOf(openAi, transcript).flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.flatMap((part) => ('toolName' in part ? [part.toolName] : [])),
    );
    expect(names).toEqual(Array(2).fill(`what_is_this_${'x'.repeat(51)}`));
  });

  it('marks for anthropic what is worth keeping in its cache', () => {
    const transcript = [user('Look'), asked('', 'call-1'), result('call-1')];
    const marked = promptOf(anthropic, transcript, 'Be kind').map(
      ({ providerOptions }) => providerOptions !== undefined,
    );
    expect(marked).toEqual([true, false, false, true]);
    expect(promptOf(openAi, transcript, 'Be kind').every(({ providerOptions }) => providerOptions === undefined)).toBe(
      true,
    );
  });

  it('shows images of messages, and those of results with them or, where that cannot be, behind all of them', () => {
    const image = { type: 'file', mediaType: 'image/png', data: bytes };
    const transcript = [
      user('Look', 'image-1', 'other'),
      asked('', 'call-1', 'call-2'),
      result('call-1', { fileIds: ['image-1'] }),
      result('call-2'),
      user('And?'),
    ];
    const [first, , withImage] = promptOf(anthropic, transcript);
    expect(first?.content).toEqual([{ type: 'text', text: 'Look' }, image]);
    expect(withImage?.content).toMatchObject([
      {
        output: {
          type: 'content',
          value: [
            { type: 'text', text: 'seen' },
            { type: 'image-data', mediaType: 'image/png', data: bytes.toString('base64') },
          ],
        },
      },
    ]);
    const prompt = promptOf(openAi, transcript);
    const images = [{ type: 'text', text: 'Image of a tool’s result: artifacts/a.png' }, image];
    expect(prompt.slice(4).map(({ role, content }) => [role, content])).toEqual([
      ['user', [...images, { type: 'text', text: 'And?' }]],
    ]);
    expect(promptOf(openAi, transcript.slice(0, 4)).at(-1)?.content).toEqual(images);
  });

  it('describes tools as they are', () => {
    const tool = {
      name: 'look',
      title: 'Look',
      description: 'Looks.',
      inputSchema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
      policy: 'allow' as const,
      idempotent: true,
      execute: () => Promise.reject(new Error('not now')),
    };
    expect(toFunctionTools([tool])).toEqual([
      { type: 'function', name: 'look', description: 'Looks.', inputSchema: tool.inputSchema },
    ]);
  });
});

describe('the order of roles', () => {
  const image: TranscriptMessage[] = [asked('', 'call-1'), result('call-1', { fileIds: ['image-1'] })];
  const calls: TranscriptMessage[] = [asked('', 'call-1'), result('call-1', { outcome: 'unknown' })];
  const cases: [what: string, transcript: TranscriptMessage[], roles: string][] = [
    ['an interrupt before the first word', [user('a'), user('b')], 'U'],
    ['an empty answer', [user('a'), asked(''), user('b')], 'U'],
    ['a white answer', [user('a'), asked(' \n'), user('b'), asked('c'), user('d')], 'UAU'],
    ['three failed Runs', [user('a'), user('b'), user('c')], 'U'],
    ['an interrupt of tools', [user('a'), ...calls, user('b')], 'UCTU'],
    ['tools and an empty answer', [user('a'), ...calls, asked(''), user('b')], 'UCTU'],
    ['images of tools', [user('a'), ...image], 'UCTU'],
    ['images of tools and an interrupt', [user('a'), ...image, user('b')], 'UCTU'],
    ['two answers in a row', [user('a'), asked('b'), asked('c'), user('d')], 'UAU'],
    ['an answer before calls', [user('a'), asked('b'), ...calls], 'UCT'],
    ['an answer at the end', [user('a'), asked('b')], 'UAU'],
    ['parallel calls', [user('a'), asked('b', 'c', 'd'), result('c'), result('d')], 'UCTT'],
  ];
  const letters = (prompt: ReturnType<typeof promptOf>): string =>
    prompt
      .map(({ role, content }) => {
        const calls = typeof content !== 'string' && content.some(({ type }) => type === 'tool-call');
        return calls ? 'C' : role.charAt(0).toUpperCase();
      })
      .join('');

  it.each(cases)('has no consecutive messages of one role after %s', (_, transcript, roles) => {
    expect(letters(promptOf(openAi, transcript))).toBe(roles);
  });

  it('keeps all messages, and joins adjacent texts', () => {
    const said = [user('a'), user('b', 'image-1'), user('c'), asked('d'), asked('e')];
    expect(
      promptOf(openAi, said)
        .slice(0, 2)
        .map(({ content }) => content),
    ).toEqual([
      [
        { type: 'text', text: 'a\n\nb' },
        { type: 'file', mediaType: 'image/png', data: bytes },
        { type: 'text', text: 'c' },
      ],
      [{ type: 'text', text: 'd\n\ne' }],
    ]);
  });

  it('stays as stored if the manifest says so, and with anthropic', () => {
    const transcript = [user('a'), user('b')];
    for (const model of [modelOf({ quirks: { roles: 'stored' } }), anthropic])
      expect(letters(promptOf(model, transcript))).toBe('UU');
  });
});

describe('ids of calls', () => {
  const transcript = (...ids: string[]) => ids.flatMap((id) => [asked('', id), result(id)]);
  const idsOf = (model: ModelChoice, ...ids: string[]) =>
    promptOf(model, [user('a'), ...transcript(...ids)]).flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : [])),
    );

  it('are nine letters and digits derived from the stored id, the same in call and result', () => {
    const ids = ['01ARZ3NDEKTSV4RRFFQ69G5FAV', '01ARZ3NDEKTSV4RRFFQ69G5FAW'];
    const [call, itsResult, ...others] = idsOf(openAi, ...ids);
    expect(call).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(itsResult).toBe(call);
    expect(new Set(others).size).toBe(1);
    expect(others[0]).not.toBe(call);
    // Whatever else the request holds.
    expect(idsOf(openAi, ids[1]!)).toEqual(others);
  });

  it.each([['anthropic', anthropic] as const, ['a manifest that says so', modelOf({ quirks: { callIds: 'stored' } })]])(
    'stay as stored with %s',
    (_, model) => expect(idsOf(model, 'call-1')).toEqual(['call-1', 'call-1']),
  );
});

describe('reasoning', () => {
  const thought = (
    model: ModelChoice,
    text: string,
    more: Partial<Extract<TranscriptMessage, { role: 'assistant' }>>,
  ) => {
    const reasoning = { field: REASONING_FIELDS[0], text };
    const continuation: unknown = toContinuation(model, { estimatedTokens: 1, blocks: [], reasoning });
    return { role: 'assistant' as const, text: '', toolCalls: [], ...more, continuation };
  };
  const transcriptOf = (model: ModelChoice): TranscriptMessage[] => [
    user('a'),
    thought(model, 'old', { toolCalls: [call('call-1')] }),
    result('call-1'),
    thought(model, 'older answer', { text: 'b' }),
    user('c'),
    thought(model, 'new', { toolCalls: [call('call-2')] }),
    result('call-2'),
    asked('', 'call-3'),
    result('call-3'),
    thought(model, 'newest', { toolCalls: [call('call-4')] }),
    result('call-4'),
  ];
  const returned = (model: ModelChoice, transcript: TranscriptMessage[]) =>
    promptOf(model, transcript).flatMap(({ role, content }) =>
      role === 'assistant' ? content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : [])) : [],
    );

  it.each([
    ['of the turn', openAi, ['new', 'newest']],
    [
      'of all turns of DeepSeek',
      modelOf({ baseUrl: 'https://api.deepseek.com' }),
      ['old', 'older answer', 'new', 'newest'],
    ],
    ['of none at Groq', modelOf({ baseUrl: 'https://api.groq.com/openai/v1' }), []],
    ['of none where the manifest says so', modelOf({ quirks: { reasoning: 'none' } }), []],
    ['of none with anthropic', anthropic, []],
  ])('goes back: that %s', (_, model, texts) => {
    expect(returned(model, transcriptOf(model))).toEqual(texts);
  });

  it('does not go to another model or server', () => {
    const transcript = transcriptOf(openAi);
    expect(returned(modelOf({ name: 'm-2' }), transcript)).toEqual([]);
    expect(returned(modelOf({ baseUrl: 'http://127.0.0.1/v1' }), transcript)).toEqual([]);
  });

  it('is not a message by itself', () => {
    const transcript = [user('a'), thought(openAi, 'Hm', {}), user('b')];
    expect(promptOf(openAi, transcript)).toEqual([{ role: 'user', content: [{ type: 'text', text: 'a\n\nb' }] }]);
  });
});

describe('what a message continues with', () => {
  const blocks: AnswerBlock[] = [
    { type: 'thinking', text: 'Hm', signature: 'signed' },
    { type: 'text', length: 3 },
    { type: 'redacted', data: 'hidden' },
    { type: 'call', signature: 'thought' },
    { type: 'text', length: 2 },
  ];
  const message = (continuation: unknown): TranscriptMessage => ({
    ...(asked('Abcde', 'call-1', 'call-2') as Extract<TranscriptMessage, { role: 'assistant' }>),
    continuation,
  });
  const contentOf = (model: ModelChoice, continuation: unknown) => promptOf(model, [message(continuation)])[0]?.content;

  it('is told in its order, and what the order does not know after it', () => {
    expect(contentOf(anthropic, toContinuation(anthropic, { estimatedTokens: 1, blocks }))).toMatchObject([
      { type: 'reasoning', text: 'Hm', providerOptions: { anthropic: { signature: 'signed' } } },
      { type: 'text', text: 'Abc' },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'hidden' } } },
      { type: 'tool-call', toolCallId: 'call-1', providerOptions: { google: { thoughtSignature: 'thought' } } },
      { type: 'text', text: 'de' },
      { type: 'tool-call', toolCallId: 'call-2' },
    ]);
  });

  it.each<[string, unknown]>([
    ['of another harness', { anything: true }],
    ['that is no object', 'text'],
    ['of a newer release', { ...toContinuation(anthropic, { estimatedTokens: 1, blocks }), version: 2 }],
    ['of another provider', toContinuation(openAi, { estimatedTokens: 1, blocks })],
    [
      'of another model',
      toContinuation(modelOf({ provider: 'anthropic', name: 'm-2' }), { estimatedTokens: 1, blocks }),
    ],
    [
      'of another server',
      toContinuation(modelOf({ provider: 'anthropic', baseUrl: 'https://else.example.com' }), {
        estimatedTokens: 1,
        blocks,
      }),
    ],
    ['that tells nothing', toContinuation(anthropic, { estimatedTokens: 1, blocks: [{ type: 'text', length: 5 }] })],
  ])('is left out when it is one %s', (_, continuation) => {
    expect(contentOf(anthropic, continuation)).toMatchObject([
      { type: 'text', text: 'Abcde' },
      { type: 'tool-call', toolCallId: 'call-1' },
      { type: 'tool-call', toolCallId: 'call-2' },
    ]);
  });
});
