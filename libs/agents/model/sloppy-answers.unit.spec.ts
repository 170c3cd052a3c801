import fc from 'fast-check';
import { stepOf, type Made } from './tolerant-answers.testing.ts';

/** Seeds for each protocol. */
const SEEDS = Number(process.env['SPOOL_SEEDS'] ?? 300);

type Provider = 'openai-compatible' | 'anthropic';
type Event = Record<string, unknown>;
/** An event, or a text that is sent unchanged. */
type Frame = Event | string;

const chunk = (delta: object, finish: string | null = null): Event => ({
  ...{
    id: 'chatcmpl-9e3',
    object: 'chat.completion.chunk',
    created: 1_764_000_000,
    model: 'm-1',
    service_tier: 'default',
  },
  ...{ system_fingerprint: 'fp_1', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null },
});
const DETAILS = { completion_tokens_details: { reasoning_tokens: 4 }, prompt_tokens_details: { cached_tokens: 8 } };

/** Answers as the real providers stream them. */
const RECORDED: Record<Provider, Event[]> = {
  'openai-compatible': [
    chunk({ role: 'assistant', content: '', refusal: null }),
    chunk({ reasoning_content: 'The person wants tea.' }),
    chunk({ content: 'One mo' }),
    chunk({ content: 'ment … ☕\n\n' }),
    chunk({ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'brew', arguments: '' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"kind":' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '"green", "cups": [1, 2.50]}' } }] }),
    chunk({
      tool_calls: [
        {
          index: 1,
          id: 'call_b',
          type: 'function',
          function: { name: 'wait', arguments: '{"s":90,"why":"\\"steep\\""}' },
        },
      ],
    }),
    chunk({}, 'tool_calls'),
    { ...chunk({}), choices: [], usage: { prompt_tokens: 41, completion_tokens: 23, total_tokens: 64, ...DETAILS } },
  ],
  anthropic: [
    {
      type: 'message_start',
      message: {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm-1', content: [], stop_reason: null },
        ...{ stop_sequence: null, usage: { input_tokens: 41, cache_read_input_tokens: 8, output_tokens: 1 } },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'The person wants tea.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'ping' },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'One mo' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'ment … ☕\n\n' } },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'toolu_a', name: 'brew', input: {} },
    },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"kind":' } },
    {
      type: 'content_block_delta',
      index: 2,
      delta: { type: 'input_json_delta', partial_json: '"green", "cups": [1, 2.50]}' },
    },
    { type: 'content_block_stop', index: 2 },
    {
      type: 'content_block_start',
      index: 3,
      content_block: { type: 'tool_use', id: 'toolu_b', name: 'wait', input: {} },
    },
    {
      ...{ type: 'content_block_delta', index: 3 },
      delta: { type: 'input_json_delta', partial_json: '{"s":90,"why":"\\"steep\\""}' },
    },
    { type: 'content_block_stop', index: 3 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 23 } },
    { type: 'message_stop' },
  ],
};

/** Fields that an answer does not need anywhere. */
const UNNEEDED = [
  ...['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint', 'logprobs', 'role', 'refusal', 'type'],
  ...['stop_sequence', 'total_tokens', 'completion_tokens_details', 'content', 'usage'],
];
/** Returns whether the field, or its content, is needed here after all. */
const isNeeded = (name: string, value: unknown, holder: Event): boolean =>
  (name === 'type' && !['function', 'message'].includes(String(value))) ||
  (name === 'content' && value !== '' && !Array.isArray(value)) ||
  (name === 'usage' && value !== null) ||
  (name === 'id' && 'function' in holder);

function unneededOf(event: unknown, found: { holder: Event; name: string }[] = []): { holder: Event; name: string }[] {
  if (typeof event !== 'object' || event === null) return found;
  for (const [name, value] of Object.entries(event)) {
    if (UNNEEDED.includes(name) && !isNeeded(name, value, event as Event)) found.push({ holder: event as Event, name });
    unneededOf(value, found);
  }
  return found;
}

const UNKNOWN: Record<Provider, Frame[]> = {
  'openai-compatible': [
    ...[
      'data:',
      'data: null',
      'data: {"id":',
      'data: 7',
      ': keepalive',
      'event: ping\ndata: {"type":"ping"}',
      'x-nothing',
    ],
    ...[
      {},
      { object: 'chat.status' },
      // Without its type it would be an error in its bare form.
      { type: 'status', message: 'still thinking' },
      { choices: [{ index: 7, delta: { content: 'another' } }] },
      { choices: null },
      { choices: [] },
      { choices: [{ delta: null }] },
      { error: null },
    ],
    { choices: [{ index: 0, delta: { content: null, tool_calls: null, audio: { id: 'x' } } }] },
  ],
  anthropic: [
    ...[
      'data:',
      'data: null',
      'data: {"type":',
      'data: 7',
      ': keepalive',
      'event: ping\ndata: {"type":"ping"}',
      'x-nothing',
    ],
    ...[
      {},
      { type: 'something_new', message: 'x' },
      { type: 'ping', detail: 'x' },
      { type: 'content_block_stop', index: 99 },
    ],
    ...[
      { type: 'content_block_start', index: 99, content_block: { type: 'new_kind', text: 'no' } },
      { type: 'content_block_delta', index: 99, delta: { type: 'new_delta', text: 'no' } },
    ],
  ],
};

const CHANGES = ['insert', 'omit', 'null', 'add', 'lines', 'field', 'object', 'repeat usage'] as const;
type Change = { what: (typeof CHANGES)[number]; at: number; pick: number };

/** Applies one change that keeps the meaning of the answer. */
function changed(provider: Provider, frames: Frame[], { what, at, pick }: Change): Frame[] {
  const place = at % frames.length;
  const frame = frames[place]!;
  const unknown = UNKNOWN[provider];
  if (what === 'insert') return frames.toSpliced(place, 0, structuredClone(unknown[pick % unknown.length]!));
  if (typeof frame === 'string') return frames;
  const event = structuredClone(frame);
  const unneeded = unneededOf(event);
  const chosen = unneeded[pick % Math.max(1, unneeded.length)];
  if (what === 'omit' && chosen !== undefined) delete chosen.holder[chosen.name];
  if (what === 'null' && chosen !== undefined) chosen.holder[chosen.name] = null;
  if (what === 'add') event[`x_${pick}`] = [null, { nested: [pick] }, 'text'][pick % 3];
  if (what === 'object') withObject(event);
  if (what === 'lines') return frames.with(place, JSON.stringify(event, null, 1).replaceAll(/^/gm, 'data: '));
  if (what === 'field') return frames.with(place, `id: ${pick}\nretry: 5\ndata:${JSON.stringify(event)}`);
  if (what === 'repeat usage' && event.usage && provider === 'openai-compatible')
    return frames.toSpliced(place, 0, event);
  return frames.with(place, event);
}

/** Replaces arguments that come in one event by an object. */
function withObject(event: Event): void {
  const [choice] = (event.choices ?? []) as { delta: { tool_calls?: { id?: string; function: Event }[] } }[];
  const called = choice?.delta?.tool_calls?.[0];
  if (called?.function?.name === 'wait') called.function.arguments = objectOf(called.function.arguments);
  const delta = (event.delta ?? {}) as Event;
  if (event.index === 3 && delta.type === 'input_json_delta') delta.partial_json = objectOf(delta.partial_json);
}

const objectOf = (json: unknown): unknown => (typeof json === 'string' ? JSON.parse(json) : json);

interface Sloppiness {
  changes: Change[];
  /** The sizes of the chunks, bytes. */
  pieces: number[];
  lineEnd: string;
  hasMark: boolean;
  /** How it ends: as the protocol defines, without that end, or with an open connection. */
  end: 'whole' | 'cut' | 'open';
}

const SLOPPINESS: fc.Arbitrary<Sloppiness> = fc.record({
  changes: fc.array(fc.record({ what: fc.constantFrom(...CHANGES), at: fc.nat(1_000), pick: fc.nat(1_000) }), {
    maxLength: 12,
  }),
  pieces: fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 }),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  hasMark: fc.boolean(),
  end: fc.constantFrom('whole' as const, 'cut' as const, 'open' as const),
});

function sent(provider: Provider, { changes, pieces, lineEnd, hasMark, end }: Sloppiness) {
  const recorded: Frame[] = RECORDED[provider];
  let frames = changes.reduce((all, change) => changed(provider, all, change), recorded);
  if (provider === 'openai-compatible' && end !== 'cut') frames = [...frames, 'data: [DONE]'];
  if (provider === 'anthropic' && end === 'cut') frames = frames.filter((frame) => !isLast(frame));
  const text = frames
    .map((frame) => (typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}`))
    .map((frame) => `${frame}\n\n`.replaceAll('\n', lineEnd))
    .join('');
  const bytes = Buffer.from((hasMark ? '\uFEFF' : '') + text);
  const split: Uint8Array[] = [];
  for (let from = 0, i = 0; from < bytes.length; i++) {
    const size = pieces[i % pieces.length]!;
    split.push(bytes.subarray(from, from + size));
    from += size;
  }
  return { provider, pieces: split, ends: end !== 'open' };
}

const isLast = (frame: Frame): boolean => JSON.stringify(frame).includes('message_stop');

const WHOLE: Omit<Made, 'closed'> = {
  thinking: 'The person wants tea.',
  text: 'One moment … ☕\n\n',
  calls: [
    ['brew', { kind: 'green', cups: [1, 2.5] }],
    ['wait', { s: 90, why: '"steep"' }],
  ],
};

describe.each(['openai-compatible', 'anthropic'] as const)('an answer of %s', (provider) => {
  const usage = provider === 'anthropic' ? [49, 23, 8] : [41, 23, 8];

  it('is the same in any sloppy form', async () => {
    const isSame = async (sloppiness: Sloppiness): Promise<void> => {
      const { closed: _, ...made } = await stepOf(sent(provider, sloppiness));
      expect(made).toEqual({ ...WHOLE, usage });
    };
    await isSame({ changes: [], pieces: [10_000], lineEnd: '\n', hasMark: false, end: 'whole' });
    await fc.assert(fc.asyncProperty(SLOPPINESS, isSame), { numRuns: SEEDS });
  }, 600_000);
});
