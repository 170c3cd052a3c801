import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
} from '@ai-sdk/provider';
import type { ScriptedProvider } from './scripted-provider.ts';

type Part<T extends LanguageModelV3StreamPart['type']> = Extract<LanguageModelV3StreamPart, { type: T }>;

/** The models of the AI SDK, as the product uses them, with the provider under test behind them. */
export const MODELS: Record<'openai' | 'anthropic', (provider: ScriptedProvider, apiKey?: string) => LanguageModelV3> =
  {
    openai: ({ openaiUrl, apiKey: key }, apiKey = key) =>
      createOpenAICompatible({ name: 'scripted', baseURL: openaiUrl, apiKey, includeUsage: true })('gpt-scripted'),
    anthropic: ({ anthropicUrl, apiKey: key }, apiKey = key) =>
      createAnthropic({ baseURL: anthropicUrl, apiKey })('claude-scripted'),
  };

/** What came of a step. */
export interface Said {
  texts: string[];
  thoughts: string[];
  toolCalls: Part<'tool-call'>[];
  /** The pieces of the tools' inputs, in the order of the calls. */
  inputs: string[][];
  /** Undefined if it ended without. */
  finish: Part<'finish'> | undefined;
  /** Told within the stream. */
  errors: unknown[];
  /** How the stream broke off. */
  broken: unknown;
  /** It, as the next request has it. */
  message: LanguageModelV3Message;
}

export const user = (text: string): LanguageModelV3Message => ({ role: 'user', content: [{ type: 'text', text }] });

export const result = ({ toolCallId, toolName }: Part<'tool-call'>, value: string): LanguageModelV3Message => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value } }],
});

/** @throws APICallError if it is refused */
export async function say(
  model: LanguageModelV3,
  prompt: LanguageModelV3Prompt,
  options: Partial<LanguageModelV3CallOptions> & { onPart?: (part: LanguageModelV3StreamPart) => void } = {},
): Promise<Said> {
  const { onPart, ...rest } = options;
  const { stream } = await model.doStream({ prompt, maxOutputTokens: 1000, ...rest });
  const parts: LanguageModelV3StreamPart[] = [];
  let broken: unknown;
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      parts.push(next.value);
      onPart?.(next.value);
    }
  } catch (error) {
    broken = error;
  }
  return { ...whatIsIn(parts), broken };
}

function whatIsIn(parts: LanguageModelV3StreamPart[]): Omit<Said, 'broken'> {
  const of = <T extends LanguageModelV3StreamPart['type']>(type: T) =>
    parts.filter((part): part is Part<T> => part.type === type);
  const texts = of('text-delta').map(({ delta }) => delta);
  const thought = of('reasoning-delta');
  const signed = thought.find(({ providerMetadata }) => providerMetadata);
  const thoughts = thought.flatMap(({ delta }) => delta || []);
  const toolCalls = of('tool-call');
  const content: Extract<LanguageModelV3Message, { role: 'assistant' }>['content'] = [];
  if (signed) content.push({ type: 'reasoning', text: thoughts.join(''), providerOptions: signed.providerMetadata! });
  if (texts.length > 0) content.push({ type: 'text', text: texts.join('') });
  for (const { toolCallId, toolName, input } of toolCalls) {
    content.push({ type: 'tool-call', toolCallId, toolName, input: isJson(input) ? JSON.parse(input) : {} });
  }
  const inputs = toolCalls.map(({ toolCallId }) =>
    of('tool-input-delta').flatMap(({ id, delta }) => (id === toolCallId ? delta : [])),
  );
  const errors = of('error').map(({ error }) => error);
  const message: LanguageModelV3Message = { role: 'assistant', content };
  return { texts, thoughts, toolCalls, inputs, finish: of('finish')[0], errors, message };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
