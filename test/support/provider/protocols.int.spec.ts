import { APICallError, type LanguageModelV3, type LanguageModelV3Message } from '@ai-sdk/provider';
import { MODELS, result, say, user } from './say.testing.ts';
import { ScriptedProvider } from './scripted-provider.ts';

/** What only one of the protocols has. */
let provider: ScriptedProvider;

beforeAll(async () => {
  const thinking = { pieces: ['Hm', '.'], signature: 'of its own' };
  provider = await ScriptedProvider.start({ scripts: { signed: { steps: [{ thinking, text: ['Yes.'] }] } } });
});
afterAll(() => provider.close());

/** Events and the status of an answer, as they are on the wire. */
async function post(url: string, headers: Record<string, string>, body: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url, { method: 'POST', headers, body: text });
  const answer = await response.text();
  const data = answer.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []));
  return { status: response.status, answer, data };
}

const parsed = (data: string[]): Record<string, unknown>[] =>
  data.flatMap((line) => (line === '[DONE]' ? [] : [JSON.parse(line) as Record<string, unknown>]));

describe('the scripted provider speaks as OpenAI does', () => {
  const completions = (body: unknown) =>
    post(`${provider.openaiUrl}/chat/completions`, { authorization: `Bearer ${provider.apiKey}` }, body);
  const request = (content: unknown) => ({ model: 'm', stream: true, messages: [{ role: 'user', content }] });

  it('with chunks, the usage last and only if it was asked for, and [DONE]', async () => {
    const plain = await completions(request('script: thinking'));
    expect(plain.data.at(-1)).toBe('[DONE]');
    expect(parsed(plain.data).filter((chunk) => 'usage' in chunk)).toEqual([]);
    const counted = await completions({ ...request('script: thinking'), stream_options: { include_usage: true } });
    const chunks = parsed(counted.data);
    expect(chunks.at(-1)).toMatchObject({ object: 'chat.completion.chunk', choices: [], usage: { total_tokens: 60 } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    const deltas = chunks.flatMap(({ choices }) => (choices as { delta: object }[]).map(({ delta }) => delta));
    expect(deltas.slice(0, 2)).toEqual([{ role: 'assistant', content: '' }, { reasoning_content: 'They greet me. ' }]);
  });

  it('and finds the script in a message of parts', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
    const parts = [image, { type: 'text', text: 'script: parallel-tools\nseen' }];
    expect((await completions(request(parts))).status).toBe(200);
    expect(provider.requests.at(-1)).toMatchObject({ script: 'parallel-tools', refusal: null });
  });

  it.each([
    ['no JSON', '{'],
    ['no model', { ...request('script: hello'), model: undefined }],
    ['no messages', { ...request('script: hello'), messages: [] }],
    ['no stream', { ...request('script: hello'), stream: false }],
    [
      'a tool whose name has a dot',
      { ...request('script: hello'), tools: [{ type: 'function', function: { name: 'a.b' } }] },
    ],
  ])('and refuses %s', async (_, body) => {
    const { status, answer } = await completions(body);
    expect(status).toBe(400);
    expect(JSON.parse(answer)).toMatchObject({ error: { type: 'invalid_request_error', code: null } });
    expect(provider.requests.at(-1)!.refusal).not.toBeNull();
  });

  it('and knows no other paths', async () => {
    expect((await post(`${provider.openaiUrl}/responses`, {}, {})).status).toBe(404);
  });
});

describe('the scripted provider speaks as Anthropic does', () => {
  const version = { 'anthropic-version': '2023-06-01' };
  const messages = (body: unknown, headers: Record<string, string> = version) =>
    post(`${provider.anthropicUrl}/messages`, { 'x-api-key': provider.apiKey, ...headers }, body);
  const request = (...turns: object[]) => ({ model: 'm', max_tokens: 100, stream: true, messages: turns });
  const hello = { role: 'user', content: 'script: hello' };

  it('with events that open and close each block', async () => {
    const { answer, data } = await messages(request({ role: 'user', content: 'script: thinking-tools\nhello' }));
    const types = parsed(data).map(({ type, delta }) => (delta as { type?: string } | undefined)?.type ?? type);
    expect(types).toEqual([
      ...['message_start', 'ping'],
      ...['content_block_start', 'thinking_delta', 'thinking_delta', 'signature_delta', 'content_block_stop'],
      ...['content_block_start', 'input_json_delta', 'input_json_delta', 'input_json_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
    const named = answer.split('\n').filter((line) => line.startsWith('event: '));
    expect(named).toEqual(parsed(data).map(({ type }) => `event: ${String(type)}`));
  });

  describe('of thinking', () => {
    let model: LanguageModelV3;
    const asked = user('script: thinking-tools\nhello');
    const enabled = { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } } };

    beforeAll(() => (model = MODELS.anthropic(provider)));

    it('takes what it gave out, with its signature', async () => {
      const first = await say(model, [asked], enabled);
      expect(first.thoughts.join('')).toBe('I had better ask.');
      const told = result(first.toolCalls[0]!, 'Echo: hello');
      const second = await say(model, [asked, first.message, told], enabled);
      expect(second.texts.join('')).toBe('It said: Echo: hello');
      expect(second.thoughts.join('')).toBe('Now I know.');
    });

    it('gives the signature that the script names', async () => {
      const { message } = await say(model, [user('script: signed')], enabled);
      expect(message.content).toContainEqual(
        expect.objectContaining({ text: 'Hm.', providerOptions: { anthropic: { signature: 'of its own' } } }),
      );
    });

    it('refuses what was changed, and that it does not come back', async () => {
      const { message, toolCalls } = await say(model, [asked], enabled);
      const told = result(toolCalls[0]!, 'Echo: hello');
      const parts = message.content as { type: string; text: string }[];
      const next = (changed: unknown) => say(model, [asked, changed as LanguageModelV3Message, told], enabled);
      const worded = { ...message, content: [{ ...parts[0], text: 'I need not ask.' }, ...parts.slice(1)] };
      await expect(next(worded)).rejects.toThrow('messages.1.content.0: Invalid `signature` in `thinking` block');
      const providerOptions = { anthropic: { signature: 'of its own' } };
      const signed = { ...message, content: [{ ...parts[0], providerOptions }, ...parts.slice(1)] };
      await expect(next(signed)).rejects.toThrow('messages.1.content.0: Invalid `signature` in `thinking` block');
      const forgotten = next({ ...message, content: parts.slice(1) });
      await expect(forgotten).rejects.toThrow('Expected `thinking` or `redacted_thinking`, but found `tool_use`');
      await expect(forgotten).rejects.toBeInstanceOf(APICallError);
    });
  });

  it.each<[string, object, RegExp]>([
    ['no max_tokens', { ...request(hello), max_tokens: undefined }, /max_tokens/],
    ['a message of the assistant first', request({ role: 'assistant', content: 'Hi.' }, hello), /first message/],
    ['an empty text', request(hello, { role: 'assistant', content: [{ type: 'text', text: '' }] }, hello), /non-empty/],
    [
      'thinking without a signature',
      request(hello, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.' }] }, hello),
      /content\[0\]\.signature/,
    ],
    [
      'input of a tool that is no object',
      request(hello, { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'b', input: '{' }] }, hello),
      /valid dictionary/,
    ],
    ['a role that it has not', request({ role: 'tool', content: 'x' }, hello), /role/],
  ])('and refuses %s', async (_, body, message) => {
    const { status, answer } = await messages(body);
    expect([status, JSON.parse(answer)]).toMatchObject([
      400,
      { type: 'error', error: { type: 'invalid_request_error' } },
    ]);
    expect(provider.requests.at(-1)!.refusal).toMatch(message);
  });

  it('and refuses a request of no version', async () => {
    expect(await messages(request(hello), {})).toMatchObject({ status: 400 });
    expect(provider.requests.at(-1)!.refusal).toMatch(/anthropic-version/);
  });
});
