import { fitRequest, type RequestBody } from './fit-request.ts';
import { LearnedQuirks, serverOf } from './learned-quirks.ts';
import type { ModelChoice } from './model-settings.ts';
import { manifestWith } from './provider.testing.ts';
import type { Fetch } from './providers.ts';
import { askingAgain } from './refused-fields.ts';
import type { Quirks } from './server-profiles.ts';

const modelOf = (more: Partial<ModelChoice> = {}) =>
  manifestWith({ baseUrl: 'http://127.0.0.1/v1', ...more }).model as ModelChoice;

const sent: RequestBody = {
  model: 'm-1',
  max_tokens: 100,
  temperature: 0.5,
  reasoning_effort: 'low',
  stream_options: { include_usage: true },
  tools: [
    { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {}, $schema: 'x' } } },
  ],
  messages: [
    { role: 'user', content: 'a' },
    { role: 'tool', content: 'b' },
    { role: 'user', content: 'c' },
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls: [{}] },
    { role: 'assistant', content: null, tool_calls: [{}] },
  ],
};

type Refusal = [status: number, error: unknown];

/** Sends the request to a server that refuses it so many times; returns all that it got, and what was learned. */
async function ask(refusals: Refusal[], model = modelOf()) {
  const asked: RequestBody[] = [];
  let learned: Partial<Quirks> | null = null;
  const told: string[] = [];
  const fetch: Fetch = (_, init) => {
    asked.push(JSON.parse(init?.body as string) as RequestBody);
    const [status, error] = refusals[asked.length - 1] ?? [200, 'fine'];
    return Promise.resolve(new Response(typeof error === 'string' ? error : JSON.stringify(error), { status }));
  };
  const server = { ...serverOf(model), learn: (quirks: Partial<Quirks>) => void (learned = quirks) };
  const body = JSON.stringify(fitRequest(sent, server.quirks));
  const response = await askingAgain(fetch, server, (kind, place) => told.push(`${kind} ${place}`))(
    'http://127.0.0.1/',
    { method: 'POST', body },
  );
  return { asked, learned, told, status: response.status, text: await response.text() };
}

const leaveOut = (...fields: Quirks['leaveOut']): Partial<Quirks> => ({ leaveOut: fields });
const extra = (...loc: (string | number)[]) => ({
  type: 'extra_forbidden',
  loc: ['body', ...loc],
  msg: 'Extra inputs are not permitted',
  input: sent,
});

it.each<[what: string, refusal: Refusal, learned: Partial<Quirks>]>([
  ['by FastAPI', [422, { detail: [extra('stream_options')] }], leaveOut('stream_options')],
  [
    'by Mistral',
    [422, { object: 'error', message: { detail: [extra('stream_options', 'include_usage')] } }],
    leaveOut('stream_options'),
  ],
  [
    'by Mistral, as a text',
    [422, { message: JSON.stringify({ detail: [extra('stream_options')] }).replaceAll(JSON.stringify(sent), '{}') }],
    leaveOut('stream_options'),
  ],
  [
    'two at once',
    [422, { detail: [extra('stream_options'), extra('temperature')] }],
    leaveOut('stream_options', 'temperature'),
  ],
  [
    'by Azure',
    [
      400,
      {
        error: {
          message: 'Unrecognized request argument supplied: stream_options',
          type: 'invalid_request_error',
          param: null,
        },
      },
    ],
    leaveOut('stream_options'),
  ],
  [
    'by Groq',
    [400, { error: { message: "property 'temperature' is unsupported, did you mean 'top_p'?" } }],
    leaveOut('temperature'),
  ],
  [
    'by LiteLLM',
    [
      400,
      {
        error: {
          message:
            "litellm.UnsupportedParamsError: hosted_vllm does not support parameters: ['reasoning_effort'], for model=m. To drop these, set `litellm.drop_params=True`",
          code: '400',
        },
      },
    ],
    leaveOut('reasoning_effort'),
  ],
  ['by Go', [400, 'json: unknown field "stream_options"'], leaveOut('stream_options')],
  [
    'by Gemini',
    [
      400,
      [
        {
          error: {
            code: 400,
            message: 'Invalid JSON payload received. Unknown name "reasoning_effort": Cannot find field.',
          },
        },
      ],
    ],
    leaveOut('reasoning_effort'),
  ],
  [
    'by OpenAI',
    [
      400,
      {
        error: {
          message:
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
          param: 'max_tokens',
          code: 'unsupported_parameter',
        },
      },
    ],
    { answerLimit: 'max_completion_tokens' },
  ],
  [
    'by OpenAI, a value',
    [
      400,
      {
        error: {
          message:
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
          param: 'temperature',
          code: 'unsupported_value',
        },
      },
    ],
    leaveOut('temperature'),
  ],
  [
    'within a message',
    [
      400,
      {
        error: {
          message:
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
        },
      },
    ],
    { reasoning: 'none' },
  ],
  [
    'by Mistral, an order',
    [400, { object: 'error', message: "Unexpected role 'user' after role 'tool'" }],
    { roles: 'alternating' },
  ],
  [
    'by a template',
    [500, { error: { message: 'Conversation roles must alternate user/assistant/user/assistant/...' } }],
    { roles: 'alternating' },
  ],
  [
    'by not being there',
    [400, { error: { message: 'The `reasoning_content` in the thinking mode must be passed back to the API.' } }],
    { reasoning: 'all' },
  ],
  [
    'by its place',
    [
      400,
      {
        error: {
          message: 'thinking is enabled but reasoning_content is missing in assistant tool call message at index 2',
        },
      },
    ],
    { reasoning: 'all' },
  ],
  [
    'in a schema',
    [
      400,
      {
        error: {
          message: 'Unknown name "$schema" at \'tools[0].function_declarations[0].parameters\': Cannot find field.',
        },
      },
    ],
    { schemas: 'openapi' },
  ],
  [
    'in a schema, by OpenAI',
    [
      400,
      {
        error: {
          message: "Invalid schema for function 'look': …",
          param: 'tools[0].function.parameters',
          code: 'invalid_function_parameters',
        },
      },
    ],
    { schemas: 'openapi' },
  ],
  [
    'by Anthropic’s newer models',
    [400, { error: { message: '`temperature` is deprecated for this model.' } }],
    leaveOut('temperature'),
  ],
  ['by not having it yet', [400, { error: 'reasoning_effort is not implemented' }], leaveOut('reasoning_effort')],
  [
    'by naming another',
    [400, { error: { message: 'this model does not take max_tokens, use max_completion_tokens' } }],
    { answerLimit: 'max_completion_tokens' },
  ],
  [
    'by a condition',
    [400, { error: { message: 'stream_options is only allowed when stream is enabled' } }],
    leaveOut('stream_options'),
  ],
  [
    'beside thinking',
    [400, { error: { message: '`temperature` is not supported when thinking is enabled' } }],
    leaveOut('temperature'),
  ],
  ['by Ollama', [400, { error: { message: '"m" does not support thinking' } }], leaveOut('reasoning_effort')],
])('repeats the request without what is refused %s, and remembers it', async (_, refusal, learned) => {
  const answer = await ask([refusal]);
  const told = Object.entries(learned).map(([name, value]) => `refused model.quirks.${name}: ${String(value)}`);
  expect(answer).toMatchObject({ status: 200, text: 'fine', learned, told });
  expect(answer.asked).toHaveLength(2);
  expect(answer.asked[1]).toEqual(fitRequest(sent, { ...serverOf(modelOf()).quirks, ...learned }));
  expect(answer.asked[1]).not.toEqual(answer.asked[0]);
});

it.each<[what: string, refusal: Refusal]>([
  [
    'a value that is too large',
    [400, { error: { message: 'max_tokens is too large: 100. This model supports at most 50.', param: 'max_tokens' } }],
  ],
  [
    'a value that is wrong',
    [
      400,
      {
        error: {
          message: "Invalid value: 'low'. Supported values are: 'medium' and 'high'.",
          param: 'reasoning_effort',
        },
      },
    ],
  ],
  [
    'a value that is allowed elsewhere',
    [400, { error: { message: 'temperature is only allowed if it is between 0 and 1', param: 'temperature' } }],
  ],
  ['a model that is deprecated', [400, { error: { message: 'The model m-1 is deprecated; lower its temperature.' } }]],
  ['a value above its limit', [400, { error: { message: 'max_tokens does not take values above 50' } }]],
  ['a field that cannot be left out', [422, { detail: [extra('model'), extra('messages')] }]],
  ['a field that was not sent', [422, { detail: [extra('store')] }]],
  ['a word of the language', [400, { error: { message: 'A temperature is an unknown concept to this model.' } }]],
  [
    'what it repeats of the request alone',
    [422, { detail: [{ type: 'x', msg: 'Unsupported', input: ['stream_options'] }] }],
  ],
  ['nothing', [400, '<html>Bad Request</html>']],
  ['too many levels', [400, `${'['.repeat(20_000)}"unknown field"`]],
  ['a field, with another status', [500, { detail: [extra('stream_options')] }]],
])('passes on an error that names %s', async (_, [status, error]) => {
  const answer = await ask([[status, error]]);
  expect(answer.asked).toHaveLength(1);
  expect(answer).toMatchObject({
    status,
    text: typeof error === 'string' ? error : JSON.stringify(error),
    learned: null,
  });
});

describe('repeating a request', () => {
  const refuses = (field: string): Refusal => [
    400,
    { error: { message: `Unknown parameter: '${field}'.`, param: field } },
  ];

  it('leaves out a fourth field, and no fifth one', async () => {
    const four = ['stream_options', 'temperature', 'reasoning_effort', 'reasoning_content'].map(refuses);
    const learned = { ...leaveOut('stream_options', 'temperature', 'reasoning_effort'), reasoning: 'none' };
    expect(await ask(four)).toMatchObject({ status: 200, learned });
    const five = await ask([...four, refuses('max_tokens')]);
    expect(five).toMatchObject({ status: 400, learned: null });
    expect(five.asked).toHaveLength(5);
  });

  it('sends no limit once both names are refused', async () => {
    const { asked, learned } = await ask([refuses('max_tokens'), refuses('max_completion_tokens')]);
    expect(asked.map((body) => Object.keys(body).filter((name) => name.startsWith('max_')))).toEqual([
      ['max_tokens'],
      ['max_completion_tokens'],
      [],
    ]);
    expect(learned).toEqual({ answerLimit: 'none' });
  });

  it('stops if the server refuses a field that is no longer sent', async () => {
    const { asked, status } = await ask([refuses('stream_options'), refuses('stream_options')]);
    expect([asked.length, status]).toEqual([2, 400]);
  });

  it('remembers nothing if the repeated request fails', async () => {
    expect(await ask([refuses('stream_options'), [429, 'slow down']])).toMatchObject({ status: 429, learned: null });
  });

  it('changes nothing that the manifest sets', async () => {
    const { asked } = await ask([refuses('stream_options')], modelOf({ quirks: { leaveOut: [] } }));
    expect(asked).toHaveLength(1);
  });
});

it('remembers quirks for the same model of the same agent, and for at most a thousand', () => {
  const learned = new LearnedQuirks();
  learned.serverOf('a', modelOf()).learn(leaveOut('temperature'));
  learned.serverOf('a', modelOf()).learn({ reasoning: 'none' });
  const known = (agentId: string, model = modelOf()) => learned.serverOf(agentId, model).quirks.leaveOut;
  expect(learned.serverOf('a', modelOf()).quirks).toMatchObject({ ...leaveOut('temperature'), reasoning: 'none' });
  expect([known('b'), known('a', modelOf({ name: 'm-2' })), known('a', modelOf({ quirks: { leaveOut: [] } }))]).toEqual(
    [[], [], []],
  );
  for (let i = 0; i < 999; i++) learned.serverOf(`more ${i}`, modelOf()).learn({});
  expect(known('a')).toEqual(['temperature']);
  learned.serverOf('last', modelOf()).learn({});
  expect(known('a')).toEqual([]);
});
