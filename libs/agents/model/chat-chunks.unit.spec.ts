import { openAi } from './provider.testing.ts';
import { frames, oddRows, stepOf, type Odd } from './tolerant-answers.testing.ts';

const DONE = 'data: [DONE]';
const { text, finish, usage, call, delta } = openAi;
const stop = finish('stop');
const hello = { text: 'hello' };
const estimated = [10, 2] as [number, number];
const at = { index: 0, finish_reason: null };
const partOfCall = (call: object) => delta({ tool_calls: [call] });
const withError = (error: unknown) => ({ ...text('hello'), error });

const CHAT: Odd = {
  'the end of the answer': [
    ['[DONE] without a finish reason, after text', [text('hello'), DONE], hello],
    ['[DONE] without a finish reason, after whole calls', [call('go', '{"a":1}'), DONE], { calls: [['go', { a: 1 }]] }],
    ['[DONE] amid a call', [call('go', '{"a":'), DONE], { code: 'provider_unavailable' }],
    ['[DONE] after nothing', [DONE], { code: 'provider_unavailable' }],
    ['no [DONE]', [text('hello'), stop], hello],
    ['no end at all', [text('hello')], { ...hello, code: 'provider_unavailable' }],
    [
      'no empty line after the last event',
      [text('hello'), stop, `data: ${JSON.stringify(usage(5, 3))}\ndata:`],
      { usage: [5, 3] },
    ],
    ['more after [DONE]', [text('hello'), stop, DONE, text('more')], hello],
    ['an empty finish reason', [{ choices: [{ ...at, delta: { content: 'hello' }, finish_reason: '' }] }, stop], hello],
    [
      'a finish reason “null”',
      [{ choices: [{ delta: { content: 'hello' }, finish_reason: 'null' }] }, stop, DONE],
      hello,
    ],
    ['a finish reason of its own', [text('hello'), finish('eos_token'), DONE], hello],
  ],
  'unknown parts': [
    [
      'blank, null and other frames',
      ['data:', 'data: null', 'data: {"cho', 'data: 1', 'data: []', text('hello'), stop],
      hello,
    ],
    ['lines that are none', ['hello world', 'event', ': a comment', text('hello'), stop, DONE], hello],
    ['an event of another kind', [{ type: 'ping' }, { id: 'x' }, text('hello'), { object: 'status' }, stop], hello],
    [
      'parts of content',
      [delta({ content: [{ type: 'text', text: 'hello' }, { type: 'audio', data: '' }, null] }), stop],
      hello,
    ],
    [
      'thoughts among content',
      [delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] }), text('hello'), stop],
      { ...hello, thinking: 'Hm' },
    ],
    ['one part that is no list', [delta({ content: { type: 'text', text: 'hello' } }), stop], hello],
    [
      'fields of its own',
      [{ ...text('hello'), x: { y: [1] }, service_tier: 5, created: 'now', id: 7, model: null }, stop],
      hello,
    ],
    [
      'events without empty lines between them',
      [[text('hello'), stop].map((one) => `data: ${JSON.stringify(one)}`).join('\n')],
      hello,
    ],
  ],
  'missing and null fields': [
    [
      'usage without choices',
      [text('hello'), stop, { usage: { prompt_tokens: 5, completion_tokens: 3 } }],
      { ...hello, usage: [5, 3] },
    ],
    [
      'usage with choices that are null',
      [text('hello'), stop, { choices: null, usage: { prompt_tokens: 5, completion_tokens: 3 } }],
      { usage: [5, 3] },
    ],
    ['choices that are null', [{ choices: null }, text('hello'), { choices: {} }, { choices: [null] }, stop], hello],
    ['an error that is null', [withError(null), stop], hello],
    ['errors that are empty', [withError({}), { ...stop, error: '' }], hello],
    [
      'a delta that is null',
      [{ choices: [{ delta: null }] }, text('hello'), { choices: [{ ...at, delta: null, finish_reason: 'stop' }] }],
      hello,
    ],
    ['a role that is another', [delta({ role: 'model', content: 'hello' }), delta({ role: 5 }), stop], hello],
    [
      'a refusal that is null',
      [delta({ content: 'hello', refusal: null, tool_calls: null, reasoning_content: null }), stop],
      hello,
    ],
    [
      'no index of calls',
      [partOfCall({ id: 'c1', function: { name: 'go', arguments: '{}' } }), finish('tool_calls')],
      { calls: [['go', {}]] },
    ],
    [
      'an index that is a text',
      [
        partOfCall({ index: '0', id: 'c1', function: { name: 'go' } }),
        partOfCall({ index: '0', function: { arguments: '{"a":1}' } }),
        stop,
      ],
      { calls: [['go', { a: 1 }]] },
    ],
    [
      'an id that is a number, or null',
      [
        partOfCall({ index: 0, id: 7, function: { name: 'go', arguments: '{}' } }),
        partOfCall({ index: 1, id: null, function: { name: 'do', arguments: '{}' } }),
        stop,
      ],
      {
        calls: [
          ['go', {}],
          ['do', {}],
        ],
      },
    ],
    [
      'arguments that are an object',
      [partOfCall({ index: 0, id: 'c', function: { name: 'go', arguments: { a: [1.0, 'x'] } } }), stop],
      { calls: [['go', { a: [1, 'x'] }]] },
    ],
    [
      'arguments that are null',
      [partOfCall({ index: 0, id: 'c', function: { name: 'go', arguments: null } }), stop],
      { calls: [['go', {}]] },
    ],
    [
      'a call that is no list',
      [delta({ tool_calls: { index: 0, id: 'c', function: { name: 'go', arguments: '{}' } } }), stop],
      { calls: [['go', {}]] },
    ],
    ['calls that are null', [delta({ content: 'hello', tool_calls: [null] }), stop], hello],
    [
      'a call of the old kind',
      [
        delta({ function_call: { name: 'go', arguments: '{"a":' } }),
        delta({ function_call: { arguments: '1}' } }),
        finish('function_call'),
      ],
      { calls: [['go', { a: 1 }]] },
    ],
    [
      'an answer in one piece',
      [
        {
          choices: [{ message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 5, completion_tokens: 3 },
        },
      ],
      { ...hello, usage: [5, 3] },
    ],
    [
      'an answer that is no stream',
      [JSON.stringify({ choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }] }, null, 2)],
      hello,
    ],
    [
      'the whole message once more at its end',
      [text('hello'), { choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }] }],
      hello,
    ],
    [
      'another choice, that nobody asked for',
      [text('hello'), { choices: [{ index: 1, delta: { content: 'OTHER' } }] }, stop],
      hello,
    ],
    ['thoughts in one of two fields', [delta({ reasoning_content: '', reasoning: 'Hm' }), stop], { thinking: 'Hm' }],
    [
      'a call in pieces, without index and without its id in the second',
      [
        partOfCall({ id: 'a', function: { name: 'go', arguments: '{"a"' } }),
        partOfCall({ function: { arguments: ':1}' } }),
        DONE,
      ],
      { calls: [['go', { a: 1 }]] },
    ],
    ['a byte order mark before a later event', [text('hello'), `\uFEFFdata: ${JSON.stringify(stop)}`], hello],
  ],
  usage: [
    ['negative', [text('hello'), stop, usage(5, -1)], { usage: [5, 2] }],
    ['a fraction', [text('hello'), stop, usage(5.5, 3)], { usage: [10, 3] }],
    [
      'not safe',
      [
        text('hello'),
        stop,
        'data: {"choices":[],"usage":{"prompt_tokens":9007199254740993,"completion_tokens":1e999}}',
      ],
      { usage: estimated },
    ],
    ['a text', [text('hello'), stop, { usage: { prompt_tokens: '5', completion_tokens: 3 } }], { usage: [10, 3] }],
    ['zero, whatever was said', [text('hello'), stop, usage(0, 0)], { usage: estimated }],
    ['a list', [text('hello'), stop, { usage: [1] }], { usage: estimated }],
    ['more from the cache than there was', [text('hello'), stop, usage(5, 3, 9)], { usage: [5, 3, 5] }],
    [
      'details that are none',
      [
        text('hello'),
        stop,
        { choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: 1 } },
      ],
      { usage: [5, 3] },
    ],
    [
      'with the choice',
      [
        text('hello'),
        { choices: [{ delta: {}, finish_reason: 'stop', usage: { prompt_tokens: 5, completion_tokens: 3 } }] },
      ],
      { usage: [5, 3] },
    ],
    [
      'as Groq has it',
      [text('hello'), { ...stop, x_groq: { usage: { prompt_tokens: 5, completion_tokens: 3 } } }],
      { usage: [5, 3] },
    ],
    [
      'reported twice, the second empty',
      [text('hello'), { ...stop, usage: { prompt_tokens: 5, completion_tokens: 3 } }, { choices: [], usage: {} }],
      { usage: [5, 3] },
    ],
  ],
  'errors in its stream': [
    [
      'a code that is a status',
      [{ error: { code: 400, message: 'x', type: 'BadRequestError' } }],
      { code: 'provider_rejected' },
    ],
    [
      'a quota, after text',
      [text('hello'), { error: { code: 402, message: 'Payment required' }, choices: [{ delta: {} }] }],
      { ...hello, code: 'provider_quota_exhausted' },
    ],
    [
      'a server’s bare form',
      [text('hello'), { object: 'error', message: 'x', type: 'NotFoundError', code: 404 }],
      { code: 'provider_rejected' },
    ],
    ['a text', [{ error: 'overloaded' }], { code: 'provider_unavailable' }],
    ['a detail', [{ detail: 'the maximum context length is 5' }], { code: 'context_too_long' }],
    [
      'an event that is named so',
      ['event: error\ndata: {"code":"x","message":"quota","status":429}'],
      { code: 'provider_rate_limited' },
    ],
    ['a text in an event that is named so', ['event: error\ndata: boom'], { code: 'provider_unavailable' }],
    [
      'a choice that ended so',
      [text('hello'), { choices: [{ delta: {}, finish_reason: 'error', error: { code: 429, message: 'x' } }] }],
      { code: 'provider_rate_limited' },
    ],
    [
      'an answer that is no stream',
      ['{"error": {"message": "no such model", "code": 404}}'],
      { code: 'provider_rejected' },
    ],
    ['nothing of the protocol', [{ hello: 'world' }], { code: 'provider_rejected' }],
    ['a list, as Gemini has it', [[{ error: { code: 429, message: 'x' } }]], { code: 'provider_rate_limited' }],
    [
      'a list after text',
      [text('hello'), [{ error: { code: 400, message: 'x' } }]],
      { ...hello, code: 'provider_rejected' },
    ],
    [
      'a field of its own, as llama.cpp has it',
      ['error: {"code":503,"message":"Loading model"}'],
      { code: 'provider_unavailable' },
    ],
    [
      'the same after text',
      [text('hello'), 'error: {"code":400,"message":"the request exceeds the available context size"}'],
      { ...hello, code: 'context_too_long' },
    ],
    [
      'none in events that have only a message besides',
      [
        { object: 'status', message: 'queued' },
        text('hello'),
        stop,
        { usage: { prompt_tokens: 5, completion_tokens: 3 }, message: 'ok' },
      ],
      { ...hello, usage: [5, 3] },
    ],
    [
      'none in an error without a word, or with the code of success',
      [
        { ...text('hel'), error: { message: null, code: null } },
        { ...text('lo'), error: { message: 'success', code: 0 } },
        stop,
      ],
      hello,
    ],
    ['no more than empty lists before it is cut', [{ choices: [] }], { code: 'provider_unavailable' }],
    ['no more than blank events before it is cut', ['data: ', null, 'data:'], { code: 'provider_unavailable' }],
  ],
  'numbers in arguments': [
    [
      'an integer that a double cannot hold',
      [call('go', '{"id":9007199254740993}'), stop],
      { calls: [['go', '9007199254740993']] },
    ],
    [
      'the same in an object',
      [
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"go","arguments":{"id":9007199254740993}}}]}}]}',
        stop,
      ],
      { calls: [['go', '9007199254740993']] },
    ],
    ['infinite', [call('go', '{"id":1e400}'), stop], { calls: [['go', '1e400']] }],
    [
      'fine',
      [call('go', '{"a":1.0,"b":1e2,"c":0.12345678901234567890}'), stop],
      { calls: [['go', { a: 1, b: 100, c: 0.12345678901234568 }]] },
    ],
  ],
};

test.each(oddRows(CHAT))('an answer of chat completions: %s', async (_, sent, made) => {
  expect(await stepOf({ provider: 'openai-compatible', pieces: [frames(...sent)] })).toMatchObject(made);
});
