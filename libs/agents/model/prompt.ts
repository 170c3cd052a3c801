import type {
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider';
import type { Tool, TranscriptMessage } from '../harness.ts';
import { shortCallIds } from './call-ids.ts';
import { readContinuation, type AnswerBlock, type Reasoning } from './continuation.ts';
import { REASONING_FIELD } from './fit-request.ts';
import type { ModelChoice } from './model-settings.ts';
import { returnedReasoning } from './reasoning.ts';
import { quirksOf, type Quirks } from './server-profiles.ts';
import type { ShownImage } from './shown-files.ts';
import { newRoom, toInputSchema } from './tool-schemas.ts';

type AssistantPrompt = Extract<LanguageModelV3Message, { role: 'assistant' }>;
type AssistantContent = AssistantPrompt['content'];
type UserContent = Extract<LanguageModelV3Message, { role: 'user' }>['content'];
type Assistant = Extract<TranscriptMessage, { role: 'assistant' }>;
type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/** The longest name that OpenAI accepts. Anthropic accepts longer ones. */
const MAX_NAME = 64;
const NOT_IN_NAMES = /[^A-Za-z0-9_-]/g;

/** Marks the end of the part of a prompt that Anthropic caches. */
const CACHED_HERE: SharedV3ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };

/** The last user message if the prompt would end with an answer, which providers refuse, or a stopped answer is resumed. */
const GO_ON: LanguageModelV3Message = { role: 'user', content: [{ type: 'text', text: 'Go on.' }] };
/** Follows the visible text of a stopped message, as a user message, so that models do not imitate it. */
export const STOP_MARK = '[The user stopped this answer here.]';
const STOPPED: LanguageModelV3Message = { role: 'user', content: [{ type: 'text', text: STOP_MARK }] };

export interface PromptParts {
  model: ModelChoice;
  instructions: string;
  /** The messages that fit the window. Their texts list the files. */
  transcript: readonly TranscriptMessage[];
  images: ReadonlyMap<string, ShownImage>;
  /** Default: the quirks of the model's server that are known before any call. */
  quirks?: Quirks;
}

/** What all messages of one prompt need. */
interface Told {
  model: ModelChoice;
  idOf: (toolCallId: string) => string;
  reasoning: ReadonlyMap<TranscriptMessage, Reasoning>;
}

/** Returns the transcript in the form of the provider's package. */
export function toPrompt({
  model,
  instructions,
  transcript,
  images,
  quirks = quirksOf(model),
}: PromptParts): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = [];
  const told = {
    model,
    idOf: callIdsOf(model, transcript, quirks),
    reasoning: returnedReasoning(model, quirks.reasoning, transcript),
  };
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
      prompt.push({ role: 'tool', content: [toolResult(message, together, told)] });
      // OpenAI accepts no images in results. They follow the last result, because nothing may stand between results.
      if (model.provider !== 'anthropic') imagesOfTools.push(...shown);
      continue;
    }
    showImagesOfTools();
    if (message.role === 'user') {
      const files = imagesOf(message.fileIds, images).map(filePart);
      prompt.push({ role: 'user', content: [{ type: 'text', text: textOfUser(message.text) }, ...files] });
    } else {
      const answer = assistantMessage(message, told);
      if (answer === null) continue;
      prompt.push(answer);
      if (message.stopped) prompt.push(STOPPED);
    }
  }
  showImagesOfTools();
  const last = prompt.at(-1);
  if (last === STOPPED || last?.role === 'assistant') prompt.push(GO_ON);
  return model.provider === 'anthropic' ? withCachePoints(prompt) : merged(prompt, quirks.roles);
}

/** Returns the tools in the form of the provider's package. */
export function toFunctionTools(tools: readonly Tool[]): LanguageModelV3FunctionTool[] {
  const room = newRoom();
  return tools.map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    inputSchema: toInputSchema(inputSchema, room),
  }));
}

/** Returns the function that maps stored ids of calls to those that are sent. Anthropic accepts stored ids. */
function callIdsOf(
  { provider }: ModelChoice,
  transcript: readonly TranscriptMessage[],
  { callIds }: Quirks,
): Told['idOf'] {
  if (provider === 'anthropic' || callIds === 'stored') return (id) => id;
  const ids = transcript.flatMap((message) => {
    if (message.role === 'assistant') return message.toolCalls.map(({ toolCallId }) => toolCallId);
    return message.role === 'tool' ? [message.toolCallId] : [];
  });
  const shortIds = shortCallIds(ids);
  return (id) => shortIds.get(id) ?? id;
}

/** Merges consecutive messages of one role, as after an interrupt, an empty answer, a failed Run, or images of tools. */
function merged(prompt: LanguageModelV3Prompt, roles: Quirks['roles']): LanguageModelV3Prompt {
  if (roles === 'stored') return prompt;
  const joined: LanguageModelV3Prompt = [];
  for (const message of prompt) {
    const last = joined.at(-1);
    const both = last === undefined ? null : joinedMessage(last, message);
    if (both !== null) joined.pop();
    joined.push(both ?? message);
  }
  return joined;
}

/** Returns both messages as one; null if their roles differ, or results must stand between them. */
function joinedMessage(first: LanguageModelV3Message, second: LanguageModelV3Message): LanguageModelV3Message | null {
  if (first.role === 'user' && second.role === 'user')
    return { ...first, content: joinedParts(first.content, second.content) };
  if (first.role !== 'assistant' || second.role !== 'assistant') return null;
  if (first.content.some(({ type }) => type === 'tool-call')) return null;
  return { ...first, ...second, content: joinedParts(first.content, second.content) };
}

/** Joins adjacent texts to one, because more servers accept a text than a list of parts. */
function joinedParts<Part extends { type: string }>(first: Part[], second: Part[]): Part[] {
  const [last, next] = [first.at(-1), second[0]];
  if (!isText(last) || !isText(next)) return [...first, ...second];
  return [...first.slice(0, -1), { ...last, text: `${last.text}\n\n${next.text}` }, ...second.slice(1)];
}

function isText<Part extends { type: string }>(part: Part | undefined): part is Part & { type: 'text'; text: string } {
  return part?.type === 'text';
}

function withCachePoints(prompt: LanguageModelV3Prompt): LanguageModelV3Prompt {
  return prompt.map((message, i) =>
    message.role === 'system' || i === prompt.length - 1 ? { ...message, providerOptions: CACHED_HERE } : message,
  );
}

function toolResult(
  { toolCallId, toolName, outcome, result }: ToolMessage,
  images: readonly ShownImage[],
  { idOf }: Told,
): LanguageModelV3ToolResultPart {
  const part = { type: 'tool-result' as const, toolCallId: idOf(toolCallId), toolName: providerToolName(toolName) };
  // Anthropic refuses an error without text.
  const value = isBlank(result) ? '(an empty result)' : result;
  // A refused call and one with an unknown outcome are errors, too.
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

/** Returns null for an empty message, because providers refuse it. */
function assistantMessage(message: Assistant, told: Told): AssistantPrompt | null {
  const content = assistantContent(message, told);
  if (content.length === 0) return null;
  const reasoning = told.reasoning.get(message);
  if (reasoning === undefined) return { role: 'assistant', content };
  return {
    role: 'assistant',
    content: [{ type: 'reasoning', text: reasoning.text }, ...content],
    // The package copies these options into the message.
    providerOptions: { openaiCompatible: { [REASONING_FIELD]: reasoning.field } },
  };
}

/** Returns the parts in the order of the model's answer, if the continuation has that order. */
function assistantContent(message: Assistant, { model, idOf }: Told): AssistantContent {
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
      toolCallId: idOf(call.toolCallId),
      toolName: providerToolName(call.toolName),
      // Empty if the model did not write an object. The result of the call says so.
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

/** Returns a name that providers accept; a model can make up any name. */
function providerToolName(name: string): string {
  return name.replace(NOT_IN_NAMES, '_').slice(0, MAX_NAME);
}

function textOfUser(text: string): string {
  return isBlank(text) ? '(an empty message)' : text;
}

/** Anthropic refuses a text of only white space. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}
