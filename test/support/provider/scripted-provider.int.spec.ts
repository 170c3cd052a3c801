import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  APICallError,
  type LanguageModelV3,
  type LanguageModelV3Message,
  type LanguageModelV3StreamPart,
  type LanguageModelV3ToolCall,
} from '@ai-sdk/provider';
import { ScriptedProvider } from './scripted-provider.ts';

/** The models of the AI SDK, configured as the product configures them. */
const MODELS: Record<'openai' | 'anthropic', (provider: ScriptedProvider, apiKey?: string) => LanguageModelV3> = {
  openai: ({ openaiUrl, apiKey: key }, apiKey = key) =>
    createOpenAICompatible({ name: 'scripted', baseURL: openaiUrl, apiKey, includeUsage: true })('gpt-scripted'),
  anthropic: ({ anthropicUrl, apiKey: key }, apiKey = key) =>
    createAnthropic({ baseURL: anthropicUrl, apiKey })('claude-scripted'),
};

/** The tool calls of a step, and the message that repeats them in the next request. */
interface Step {
  toolCalls: LanguageModelV3ToolCall[];
  message: LanguageModelV3Message;
}

const user = (text: string): LanguageModelV3Message => ({ role: 'user', content: [{ type: 'text', text }] });

const result = ({ toolCallId, toolName }: LanguageModelV3ToolCall, value: string): LanguageModelV3Message => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value } }],
});

/** @throws APICallError if the provider refuses the request */
async function say(model: LanguageModelV3, prompt: LanguageModelV3Message[]): Promise<Step> {
  const { stream } = await model.doStream({ prompt, maxOutputTokens: 1000 });
  const parts: LanguageModelV3StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  const toolCalls = parts.filter((part): part is LanguageModelV3ToolCall => part.type === 'tool-call');
  const content = toolCalls.map((call) => ({ ...call, input: JSON.parse(call.input) as unknown }));
  return { toolCalls, message: { role: 'assistant', content } };
}

async function refusal(said: Promise<Step>): Promise<APICallError> {
  const error: unknown = await said.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!APICallError.isInstance(error)) throw new Error(`not refused, but ${String(error)}`);
  return error;
}

describe.each(['openai', 'anthropic'] as const)('the scripted provider, asked as %s', (protocol) => {
  let provider: ScriptedProvider;
  let model: LanguageModelV3;

  beforeAll(async () => {
    provider = await ScriptedProvider.start();
    model = MODELS[protocol](provider);
  });
  afterAll(() => provider.close());

  const lastRequest = () => provider.requests.at(-1)!;

  describe('refuses', () => {
    const refused = async (prompt: LanguageModelV3Message[], message: RegExp, by = model): Promise<void> => {
      const said = await refusal(say(by, prompt));
      expect(said).toMatchObject({ statusCode: 400, message: expect.stringMatching(message) as string });
      expect(lastRequest().refusal).toBe(said.message);
    };
    const asked = user('script: parallel-tools\nhello');

    it('a wrong key', async () => {
      const said = await refusal(say(MODELS[protocol](provider, 'sk-wrong'), [user('script: hello')]));
      expect(said.statusCode).toBe(401);
      expect(lastRequest().refusal).not.toBeNull();
    });

    it('a tool call without its result', async () => {
      const { message, toolCalls } = await say(model, [asked]);
      const [echo, sum] = toolCalls;
      const missing = protocol === 'openai' ? /did not have response messages: / : /without `tool_result` blocks/;
      const naming = (id: string): RegExp => new RegExp(`${missing.source}.*${id}`);
      await refused([asked, message, result(echo!, '1'), user('script: hello')], naming(sum!.toolCallId));
      await refused([asked, message, user('script: hello')], naming(echo!.toolCallId));
      await refused([asked, message, result(sum!, '1')], naming(echo!.toolCallId));
      await refused([asked, message, user('script: hello'), result(echo!, '1'), result(sum!, '1')], missing);
    });

    it('a tool result without its call', async () => {
      const { message, toolCalls } = await say(model, [asked]);
      const results = toolCalls.map((call) => result(call, '1'));
      const unasked = protocol === 'openai' ? /must be a response to/ : /unexpected `tool_use_id`/;
      const strange = result({ ...toolCalls[0]!, toolCallId: 'strange' }, '1');
      await refused([asked, message, ...results, strange], unasked);
      await refused([asked, strange], unasked);
    });

    it('what no script is for', async () => {
      await refused([user('hello')], /script: NAME/);
      await refused([user('script: unheard-of')], /no script unheard-of/);
      const done: LanguageModelV3Message = { role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] };
      const more = protocol === 'openai' ? /no step 1/ : /must end with a user message/;
      await refused([user('script: hello'), done], more);
    });
  });
});
