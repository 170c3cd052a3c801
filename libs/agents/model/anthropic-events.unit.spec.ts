import { anthropic } from './provider.testing.ts';
import { frames, oddRows, stepOf, type Made, type Odd } from './tolerant-answers.testing.ts';

const DONE = 'data: [DONE]';
const estimated = [10, 2] as [number, number];
const message = [anthropic.start(), ...anthropic.text(0, 'hello'), ...anthropic.end('end_turn')];
const between = (...more: (object | string)[]) => [message[0]!, ...more, ...message.slice(1)];
const said = { text: 'hello', usage: [10, 20] } as Partial<Made>;
const toolUse = (more: object) => ({
  type: 'content_block_start',
  index: 0,
  content_block: { type: 'tool_use', id: 't', name: 'go', ...more },
});
const json = (partial: unknown) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'input_json_delta', partial_json: partial },
});
const stopBlock = { type: 'content_block_stop', index: 0 };
const called = { calls: [['go', { a: 1 }]] } as Partial<Made>;
const ended = anthropic.end('end_turn');

const ANTHROPIC: Odd = {
  'the end of the answer': [
    ['no message_stop', message.slice(0, -1), said],
    ['[DONE] in its place', [...message.slice(0, -1), DONE], said],
    ['more after message_stop', [...message, ...anthropic.text(1, 'more')], said],
    ['no stop reason', message.slice(0, -2), { code: 'provider_unavailable' }],
    ['no end of a block', [anthropic.start(), toolUse({ input: {} }), json('{"a":1}'), ...ended], called],
    [
      'a second message_delta without the reason',
      [...message.slice(0, -1), { type: 'message_delta', delta: {}, usage: {} }, message.at(-1)!],
      said,
    ],
  ],
  'unknown parts': [
    ['an unknown event', between({ type: 'something_new', x: 1 }, { type: 'ping' }, 'data: null', 'data: x'), said],
    [
      'an unknown block',
      between(...anthropic.block(0, { type: 'new_kind', x: 1 }, [{ type: 'new_delta', x: 1 }])),
      said,
    ],
    [
      'a delta without a type',
      between({ type: 'content_block_delta', index: 0, delta: { text: 'Oh, ' } }),
      { text: 'Oh, hello' },
    ],
    [
      'a block without a type, named by its deltas',
      [
        anthropic.start(),
        { type: 'content_block_start', index: 0, content_block: null },
        ...anthropic.text(0, 'hello').slice(1),
        ...ended,
      ],
      said,
    ],
    [
      'a call without a type',
      [
        anthropic.start(),
        { ...toolUse({}), content_block: { id: 't', name: 'go', input: {} } },
        json('{"a":1}'),
        stopBlock,
        ...ended,
      ],
      called,
    ],
    [
      'an answer in one piece, whose content is a text',
      [{ role: 'assistant', content: 'hello', stop_reason: 'end_turn' }],
      { text: 'hello' },
    ],
    [
      'a block that the server executes',
      between(
        ...anthropic.block(0, { type: 'server_tool_use', id: 's', name: 'web' }, [
          { type: 'input_json_delta', partial_json: '{}' },
        ]),
      ),
      said,
    ],
    [
      'an unknown delta',
      [
        anthropic.start(),
        ...anthropic.block(0, { type: 'text', text: '' }, [
          { type: 'new_delta' },
          { type: 'text_delta', text: 'hello' },
          { type: 'citations_delta', citation: {} },
        ]),
        ...ended,
      ],
      said,
    ],
    [
      'a second message_start',
      [anthropic.start(), { ...anthropic.start(), message: { id: 'm-2', usage: {} } }, ...message.slice(1)],
      said,
    ],
    [
      'an answer that is no stream',
      [
        JSON.stringify({
          type: 'message',
          content: [
            { type: 'text', text: 'hello' },
            { type: 'tool_use', id: 't', name: 'go', input: { a: 1 } },
          ],
          stop_reason: 'tool_use',
          usage: { input_tokens: 10, output_tokens: 20 },
        }),
      ],
      { ...said, ...called },
    ],
  ],
  'missing and null fields': [
    ['no usage at the start', [{ type: 'message_start', message: { id: 'm' } }, ...message.slice(1)], said],
    ['no message at the start', [{ type: 'message_start' }, ...message.slice(1)], said],
    ['no start', message.slice(1), said],
    [
      'usage that is null at the end',
      [
        ...message.slice(0, -2),
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: null },
        { type: 'message_stop' },
      ],
      { text: 'hello', usage: estimated },
    ],
    [
      'usage that is zero at the end',
      [
        ...message.slice(0, -2),
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 0, output_tokens: 20 } },
        { type: 'message_stop' },
      ],
      said,
    ],
    [
      'no start of a block',
      [
        anthropic.start(),
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } },
        ...ended,
      ],
      said,
    ],
    [
      'no indexes',
      [
        anthropic.start(),
        ...anthropic.text(0, 'hello').map(({ index: _, ...event }: { index?: number }) => event),
        ...ended,
      ],
      said,
    ],
    [
      'a text with its start',
      [
        anthropic.start(),
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'hello' } },
        stopBlock,
        ...ended,
      ],
      said,
    ],
    [
      'a text that is null',
      [
        anthropic.start(),
        ...anthropic.block(0, { type: 'text', text: null }, [
          { type: 'text_delta', text: null },
          { type: 'text_delta', text: 'hello' },
        ]),
        ...ended,
      ],
      said,
    ],
    ['input with its start', [anthropic.start(), toolUse({ input: { a: 1 } }), stopBlock, ...ended], called],
    [
      'input with its start and by deltas',
      [anthropic.start(), toolUse({ input: { a: 2 } }), json('{"a":'), json('1}'), stopBlock, ...ended],
      called,
    ],
    [
      'input that is an object',
      [anthropic.start(), toolUse({ input: null, caller: null }), json({ a: 1 }), stopBlock, ...ended],
      called,
    ],
    ['no id of a call', [anthropic.start(), toolUse({ id: null }), json('{"a":1}'), stopBlock, ...ended], called],
    [
      'no type, but the name of the event',
      message.map(({ type, ...event }: { type: string }) => `event: ${type}\ndata: ${JSON.stringify(event)}`),
      said,
    ],
  ],
  usage: [
    [
      'negative, a fraction',
      [
        anthropic.start({ input_tokens: 5.5 }),
        ...anthropic.text(0, 'hello'),
        ...anthropic.end('end_turn', { output_tokens: -1 }),
      ],
      { usage: estimated },
    ],
    [
      'not safe with the cache',
      [anthropic.start({ input_tokens: Number.MAX_SAFE_INTEGER, cache_read_input_tokens: 2 }), ...message.slice(1)],
      { usage: [10, 20, 2] },
    ],
  ],
  'errors in its stream': [
    [
      'an error as it has it',
      [anthropic.start(), { type: 'error', error: { type: 'invalid_request_error', message: 'x' } }],
      { code: 'provider_rejected' },
    ],
    [
      'a code that is a status',
      [...message.slice(0, 3), { type: 'error', error: { code: 402, message: 'x' } }],
      { text: 'hello', code: 'provider_quota_exhausted' },
    ],
    ['an error without a type', [{ error: { message: 'x', status: 404 } }], { code: 'provider_rejected' }],
    ['nothing of the protocol', [{ type: 'hello' }], { code: 'provider_rejected' }],
    [
      'a bare message',
      [anthropic.start(), { message: 'too many requests', code: 429 }],
      { code: 'provider_rate_limited' },
    ],
    [
      'none in events of other types that have a message',
      [{ type: 'status', message: 'still thinking' }, { type: 'ping', detail: 'x' }, ...message],
      { text: 'hello' },
    ],
    ['no more than pings before it is cut', [{ type: 'ping' }, { type: 'ping' }], { code: 'provider_unavailable' }],
    ['a page between blank events', ['data: ', 'data: <html>', 'data: '], { code: 'provider_rejected' }],
  ],
};

test.each(oddRows(ANTHROPIC))('an answer of anthropic: %s', async (_, sent, made) => {
  expect(await stepOf({ provider: 'anthropic', pieces: [frames(...sent)] })).toMatchObject(made);
});
