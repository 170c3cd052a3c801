import type { LanguageModelV3StreamPart, LanguageModelV3Usage, SharedV3ProviderMetadata } from '@ai-sdk/provider';
import { HarnessError, type RequestedTool, type StepEvent } from '../harness.ts';
import type { AnswerBlock } from './continuation.ts';
import { sum, textTokens } from './estimate.ts';
import { firstBytes } from '../first-bytes.ts';
import { StreamCut } from './watched-stream.ts';

/** What a model wrote instead of a JSON object is kept up to here. */
const MAX_INVALID_BYTES = 4 * 1024;
/** What one answer may be in all, UTF-16 units: the engine stores no more, and arguments would grow unseen until they are whole. */
const MAX_ANSWER = 1024 * 1024;

type Finish = Extract<LanguageModelV3StreamPart, { type: 'finish' }>;
type ToolCallPart = Extract<LanguageModelV3StreamPart, { type: 'tool-call' }>;
type ReasoningPart = Extract<LanguageModelV3StreamPart, { type: 'reasoning-start' | 'reasoning-delta' }>;

/** One answer of a model, put together from the parts of its stream. */
export class Answer {
  text = '';
  readonly toolCalls: RequestedTool[] = [];
  readonly blocks: AnswerBlock[] = [];
  private readonly written: string[] = [];
  private readonly thoughts = new Map<string, string>();
  private finished: Finish | null = null;
  private units = 0;

  /** What is to be told at once. Throws HarnessError, and the errors that the stream tells of. */
  add(part: LanguageModelV3StreamPart): StepEvent | null {
    switch (part.type) {
      case 'text-delta':
        return this.addText(part.delta);
      case 'reasoning-start':
      case 'reasoning-delta':
        return this.addThought(part);
      case 'tool-input-delta':
        this.count(part.delta);
        return null;
      case 'tool-call':
        this.addCall(part);
        return null;
      case 'error':
        throw part.error;
      case 'finish':
        this.finished = part;
        return null;
      default:
        return null;
    }
  }

  /** Whatever the stream has told of. Throws HarnessError, and StreamCut where it stopped short. */
  finish(): Finish {
    const { finished } = this;
    if (finished === null || finished.finishReason.unified === 'error')
      throw new StreamCut('The answer was cut short.');
    const { unified, raw } = finished.finishReason;
    if (unified === 'content-filter') throw new HarnessError('content_filtered');
    if (unified === 'length' && this.text === '' && this.toolCalls.length === 0) {
      // It thought until there was no room left: the same call would do the same again.
      throw new HarnessError(raw === 'model_context_window_exceeded' ? 'context_too_long' : 'output_too_large');
    }
    return finished;
  }

  /** Once, whatever the stream repeats. Estimated where the provider does not say, so that budgets count at all. */
  usage({ inputTokens, outputTokens }: LanguageModelV3Usage, estimatedTokens: number): StepEvent {
    const { total: input = 0, cacheRead: cached = 0 } = inputTokens;
    return {
      type: 'usage',
      inputTokens: input > 0 ? input : estimatedTokens,
      outputTokens: outputTokens.total ?? sum(this.said().map(textTokens)),
      ...(cached > 0 ? { cachedInputTokens: cached } : {}),
    };
  }

  /** All that the model wrote, thoughts and calls too. */
  private said(): string[] {
    return [this.text, ...this.thoughts.values(), ...this.written];
  }

  private addText(text: string): StepEvent | null {
    if (text === '') return null;
    this.count(text);
    this.text += text;
    const last = this.blocks.at(-1);
    if (last?.type === 'text') last.length += text.length;
    else this.blocks.push({ type: 'text', length: text.length });
    return { type: 'text', text };
  }

  private addThought(part: ReasoningPart): StepEvent | null {
    const { signature, redactedData } = anthropicsOf(part.providerMetadata);
    if (part.type === 'reasoning-start') {
      if (typeof redactedData === 'string') this.blocks.push({ type: 'redacted', data: redactedData });
      return null;
    }
    const text = (this.thoughts.get(part.id) ?? '') + part.delta;
    this.thoughts.set(part.id, text);
    if (typeof signature === 'string') {
      // It comes last, and is what makes the thought worth keeping.
      this.blocks.push({ type: 'thinking', text, signature });
    }
    if (part.delta === '') return null;
    this.count(part.delta);
    return { type: 'thinking', text: part.delta };
  }

  private addCall({ toolName, input, providerExecuted, providerMetadata }: ToolCallPart): void {
    if (providerExecuted === true) return;
    const signature = Object.values(providerMetadata ?? {})
      .map(({ thoughtSignature }) => thoughtSignature)
      .find((value) => typeof value === 'string');
    this.written.push(toolName + input);
    this.toolCalls.push(requestedTool(toolName, input));
    this.blocks.push({ type: 'call', ...(signature === undefined ? {} : { signature }) });
  }

  private count(piece: string): void {
    this.units += piece.length;
    if (this.units > MAX_ANSWER) throw new HarnessError('output_too_large');
  }
}

/** The model's call; its name too as the model wrote it. */
function requestedTool(toolName: string, input: string): RequestedTool {
  const toolInput = objectOf(input);
  return toolInput === null
    ? { toolName, toolInput: {}, invalidInput: firstBytes(input, MAX_INVALID_BYTES) }
    : { toolName, toolInput };
}

/** Null where it is no JSON object. Nothing at all is how some say that there are no arguments. */
function objectOf(input: string): Record<string, unknown> | null {
  if (input.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(input);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function anthropicsOf(metadata: SharedV3ProviderMetadata | undefined): Record<string, unknown> {
  return metadata?.anthropic ?? {};
}
