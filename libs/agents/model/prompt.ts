import type {
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type { Tool, TranscriptMessage } from '../harness.ts';
import { readContinuation, type AnswerBlock } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';
import type { ShownImage } from './shown-files.ts';

type AssistantContent = Extract<LanguageModelV3Message, { role: 'assistant' }>['content'];
type UserContent = Extract<LanguageModelV3Message, { role: 'user' }>['content'];
type Assistant = Extract<TranscriptMessage, { role: 'assistant' }>;
type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/** OpenAI takes names of at most so many of these characters, Anthropic some more. */
const MAX_NAME = 64;
const NOT_IN_NAMES = /[^A-Za-z0-9_-]/g;

/** Everything up to here is to be found in the provider's cache by the next call. */
const CACHED_HERE: SharedV3ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };

export interface PromptParts {
  model: ModelChoice;
  instructions: string;
  /** As it fits; texts tell of files. */
  transcript: readonly TranscriptMessage[];
  images: ReadonlyMap<string, ShownImage>;
}

/** The transcript as the provider is told of it. */
export function toPrompt({ model, instructions, transcript, images }: PromptParts): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = [];
  if (!isBlank(instructions)) prompt.push({ role: 'system', content: instructions });
  let imagesOfTools: ShownImage[] = [];
  const showImagesOfTools = (): void => {
    if (imagesOfTools.length > 0) prompt.push({ role: 'user', content: labelled(imagesOfTools) });
    imagesOfTools = [];
  };
  for (const message of transcript) {
    if (message.role === 'tool') {
      const shown = imagesOf(message.fileIds ?? [], images);
      const together = model.provider === 'anthropic' ? shown : [];
      prompt.push({ role: 'tool', content: [toolResult(message, together)] });
      // OpenAI takes no images with results. They follow once all results are told: nothing may stand between those.
      if (model.provider !== 'anthropic') imagesOfTools.push(...shown);
      continue;
    }
    showImagesOfTools();
    if (message.role === 'user') {
      const files = imagesOf(message.fileIds, images).map(filePart);
      prompt.push({ role: 'user', content: [{ type: 'text', text: textOfUser(message.text) }, ...files] });
    } else {
      const content = assistantContent(model, message);
      // Providers refuse a message that says nothing.
      if (content.length > 0) prompt.push({ role: 'assistant', content });
    }
  }
  showImagesOfTools();
  return model.provider === 'anthropic' ? withCachePoints(prompt) : prompt;
}

/** The tools as the provider is told of them. */
export function toFunctionTools(tools: readonly Tool[]): LanguageModelV3FunctionTool[] {
  return tools.map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    inputSchema,
  }));
}

function withCachePoints(prompt: LanguageModelV3Prompt): LanguageModelV3Prompt {
  return prompt.map((message, i) =>
    message.role === 'system' || i === prompt.length - 1 ? { ...message, providerOptions: CACHED_HERE } : message,
  );
}

function toolResult(
  { toolCallId, toolName, outcome, result }: ToolMessage,
  images: readonly ShownImage[],
): LanguageModelV3ToolResultPart {
  const part = { type: 'tool-result' as const, toolCallId, toolName: providerToolName(toolName) };
  // Anthropic refuses an error that says nothing.
  const value = isBlank(result) ? '(an empty result)' : result;
  // What was refused, and what nobody knows the outcome of, is no success either.
  if (outcome !== 'ok') return { ...part, output: { type: 'error-text', value } };
  if (images.length === 0) return { ...part, output: { type: 'text', value } };
  const text = { type: 'text' as const, text: value };
  const shown = images.map(({ mediaType, bytes }) => ({
    type: 'image-data' as const,
    mediaType,
    data: Buffer.from(bytes).toString('base64'),
  }));
  return { ...part, output: { type: 'content', value: [text, ...shown] } };
}

/** In the order in which the model said it, where its continuation tells that. */
function assistantContent(model: ModelChoice, message: Assistant): AssistantContent {
  const parts: AssistantContent = [];
  let rest = message.text;
  const calls = [...message.toolCalls];
  const addText = (length: number): void => {
    const text = rest.slice(0, length);
    rest = rest.slice(length);
    if (!isBlank(text)) parts.push({ type: 'text', text });
  };
  const addCall = (signature: string | undefined): void => {
    const call = calls.shift();
    if (call === undefined) return;
    parts.push({
      type: 'tool-call',
      toolCallId: call.toolCallId,
      toolName: providerToolName(call.toolName),
      // Empty where what the model wrote was no object: the call's result tells it so.
      input: call.toolInput,
      ...(signature === undefined ? {} : { providerOptions: { google: { thoughtSignature: signature } } }),
    });
  };
  for (const block of readContinuation(model, message.continuation)?.blocks ?? []) {
    if (block.type === 'text') addText(block.length);
    else if (block.type === 'call') addCall(block.signature);
    else parts.push({ type: 'reasoning', ...thinkingOf(block) });
  }
  addText(rest.length);
  while (calls.length > 0) addCall(undefined);
  return parts;
}

function thinkingOf(block: Extract<AnswerBlock, { type: 'thinking' | 'redacted' }>) {
  return block.type === 'thinking'
    ? { text: block.text, providerOptions: { anthropic: { signature: block.signature } } }
    : { text: '', providerOptions: { anthropic: { redactedData: block.data } } };
}

function imagesOf(fileIds: readonly string[], images: ReadonlyMap<string, ShownImage>): ShownImage[] {
  return fileIds.flatMap((fileId) => images.get(fileId) ?? []);
}

function filePart({ mediaType, bytes }: ShownImage): LanguageModelV3FilePart {
  return { type: 'file', mediaType, data: bytes };
}

function labelled(images: readonly ShownImage[]): UserContent {
  return images.flatMap((image) => [
    { type: 'text' as const, text: `Image of a tool’s result: ${image.path}` },
    filePart(image),
  ]);
}

/** Providers refuse other names, also those that a model made up. */
function providerToolName(name: string): string {
  return name.replace(NOT_IN_NAMES, '_').slice(0, MAX_NAME);
}

function textOfUser(text: string): string {
  return isBlank(text) ? '(an empty message)' : text;
}

/** Anthropic refuses a text of white space alone. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}
