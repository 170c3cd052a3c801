import type { LanguageModelV3StreamPart, LanguageModelV3Usage, SharedV3ProviderMetadata } from '@ai-sdk/provider';
import { HarnessError, type RequestedTool, type StepEvent } from '../harness.ts';
import type { AnswerBlock, Reasoning } from './continuation.ts';
import { BOUNDS, type TokenUsage } from '#domain';
import { BYTES_A_TOKEN, sum, textTokens } from './estimate.ts';
import { firstBytes } from '../first-bytes.ts';
import { firstInexact } from '../exact-numbers.ts';
import { checkShape } from '../json-shape.ts';
import { reportedField } from './reasoning.ts';
import { StreamCut } from './watched-stream.ts';

const MAX_INVALID_BYTES = BOUNDS.answers.invalidInput.value;
const MAX_ANSWER = BOUNDS.answers.length.value;
/** UTF-16 units that a call or a block counts besides its text, because an answer could have any number of empty ones. */
const FRAME = 64;

/**
 * An answer is cut at this many bytes of UTF-8 per token of its limit. The usual tokenizers produce 3 to 5 bytes per token in
 * any language. An answer within its limit is therefore never cut, and any other is cut before twice its limit.
 */
const CUT_BYTES_A_TOKEN = 6;
/** An answer that ended for its length with a smaller share of its tokens met another limit: the model's own. */
const SPENT_SHARE = 0.9;

export interface AnswerOptions {
  /** Tokens after which the answer is cut; unlimited by default. */
  maxTokens?: number | undefined;
  /** The limit that is sent instead if it is lower. An answer that ends there is complete. Default: none. */
  modelLimit?: number;
  /** Estimated tokens of the prompt, used if the provider does not report them. */
  estimatedTokens: number;
}

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
  /** UTF-16 units of the blocks that go back to the provider, without text and calls. */
  private keptUnits = 0;
  private bytes = 0;
  /** Tokens that the stream has reported so far. */
  private readonly reported = { input: 0, output: 0 };
  private readonly maxTokens: number;
  private readonly modelLimit: number;
  private readonly estimatedTokens: number;

  constructor({ maxTokens = Infinity, modelLimit = Infinity, estimatedTokens }: AnswerOptions) {
    this.maxTokens = maxTokens;
    this.modelLimit = modelLimit;
    this.estimatedTokens = estimatedTokens;
  }

  /** Adds a part of the stream, and returns the event to emit now, if any. Throws HarnessError and errors within the stream. */
  add(part: LanguageModelV3StreamPart): StepEvent | null {
    switch (part.type) {
      case 'text-delta':
        return this.addText(part.delta);
      case 'reasoning-start':
      case 'reasoning-delta':
        return this.addThought(part);
      case 'tool-input-start':
        this.countUnits(FRAME + part.toolName.length);
        return null;
      case 'tool-input-delta':
        this.count(part.delta);
        return null;
      case 'tool-call':
        this.addCall(part);
        return null;
      case 'raw':
        this.addReport(part.rawValue);
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

  /** Returns the finished answer. Throws HarnessError, and StreamCut if the stream ended early. */
  finish(): Finish {
    const { finished } = this;
    if (finished === null || finished.finishReason.unified === 'error')
      throw new StreamCut('The answer was cut short.');
    const { unified, raw } = finished.finishReason;
    const usage = this.usage(finished.usage);
    if (unified === 'length' && this.hasSpentAll(usage)) throw this.cut(usage);
    if (unified === 'content-filter') throw new HarnessError('content_filtered');
    if (unified === 'length' && this.text === '' && this.toolCalls.length === 0) {
      // Thinking used up all tokens. The same call would do the same again.
      throw new HarnessError(raw === 'model_context_window_exceeded' ? 'context_too_long' : 'output_too_large');
    }
    return finished;
  }

  /** The reasoning and the field in which the server sent it; undefined if the reasoning came otherwise, or there is none. */
  get reasoning(): Reasoning | undefined {
    const field = reportedField(this.finished?.providerMetadata);
    return field === undefined ? undefined : { field, text: [...this.thoughts.values()].join('') };
  }

  /** Returns the usage of the answer. Estimates what the provider does not report, so that budgets always count. */
  usage({ inputTokens, outputTokens }: LanguageModelV3Usage): TokenUsage {
    const input = countOf(inputTokens.total) || this.estimatedTokens;
    const cached = Math.min(countOf(inputTokens.cacheRead), input);
    return {
      inputTokens: input,
      // Some servers report 0 for every answer.
      outputTokens: countOf(outputTokens.total) || sum(this.said().map(textTokens)),
      ...(cached > 0 ? { cachedInputTokens: cached } : {}),
    };
  }

  /** Returns the usage known before the answer has ended. */
  private usageSoFar(): TokenUsage {
    const { input, output } = this.reported;
    return {
      inputTokens: input > 0 ? input : this.estimatedTokens,
      outputTokens: Math.max(output, Math.ceil(this.bytes / BYTES_A_TOKEN)),
    };
  }

  /** Returns whether the answer was limited by the rest of the budget and used it up. */
  private hasSpentAll({ outputTokens }: TokenUsage): boolean {
    return this.maxTokens <= this.modelLimit && outputTokens >= this.maxTokens * SPENT_SHARE;
  }

  private cut(usage: TokenUsage): HarnessError {
    return new HarnessError('token_limit_reached', { usage });
  }

  /** Adds the usage that a chunk reports. Few providers report any before the last chunk, when it is too late to cut. */
  private addReport(piece: unknown): void {
    const { usage, message } = (piece ?? {}) as { usage?: Reported; message?: { usage?: Reported } };
    const { reported } = this;
    for (const told of [usage, message?.usage]) {
      const input = sum(INPUT_FIELDS.map((field) => countOf(told?.[field])));
      const output = sum(OUTPUT_FIELDS.map((field) => countOf(told?.[field])));
      reported.input = Math.max(reported.input, input);
      reported.output = Math.max(reported.output, output);
    }
  }

  private cutWhenTooLong(): void {
    const tokens = Math.max(this.reported.output, this.bytes / CUT_BYTES_A_TOKEN);
    if (tokens > this.maxTokens) throw this.cut(this.usageSoFar());
  }

  /** Returns all text that the model wrote, including reasoning and calls. */
  private said(): string[] {
    return [this.text, ...this.thoughts.values(), ...this.written];
  }

  private addText(text: string): StepEvent | null {
    if (text === '') return null;
    this.count(text);
    this.text += text;
    const last = this.blocks.at(-1);
    if (last?.type === 'text') last.length += text.length;
    else this.keep({ type: 'text', length: text.length }, 0);
    return { type: 'text', text };
  }

  private addThought(part: ReasoningPart): StepEvent | null {
    const { signature, redactedData } = anthropicsOf(part.providerMetadata);
    if (part.type === 'reasoning-start') {
      if (typeof redactedData === 'string') this.keep({ type: 'redacted', data: redactedData }, redactedData.length);
      return null;
    }
    if (!this.thoughts.has(part.id)) this.countUnits(FRAME);
    const text = (this.thoughts.get(part.id) ?? '') + part.delta;
    this.thoughts.set(part.id, text);
    if (typeof signature === 'string') {
      // The signature comes last. Thinking without a signature cannot go back.
      this.keep({ type: 'thinking', text, signature }, text.length + signature.length);
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
    this.keep({ type: 'call', ...(signature === undefined ? {} : { signature }) }, signature?.length ?? 0);
  }

  /** Checks the size before it keeps a block, because each repeated signature adds its whole thinking again. */
  private keep(block: AnswerBlock, units: number): void {
    this.keptUnits += FRAME + units;
    if (this.keptUnits > MAX_ANSWER) throw new HarnessError('output_too_large');
    this.blocks.push(block);
  }

  private countUnits(units: number): void {
    this.units += units;
    if (this.units > MAX_ANSWER) throw new HarnessError('output_too_large');
  }

  private count(piece: string): void {
    this.countUnits(piece.length);
    if (this.maxTokens === Infinity) return;
    this.bytes += Buffer.byteLength(piece);
    this.cutWhenTooLong();
  }
}

/** The fields of both protocols. The first one is OpenAI's, which counts all input. */
const INPUT_FIELDS = [
  'prompt_tokens',
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
] as const;
const OUTPUT_FIELDS = ['completion_tokens', 'output_tokens'] as const;
type Reported = Partial<Record<(typeof INPUT_FIELDS | typeof OUTPUT_FIELDS)[number], unknown>> | null;

/** Returns a reported number of tokens, 0 if it cannot be one. */
function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}

/** Texts that models write for no arguments. */
const NO_ARGUMENTS = ['', 'null', '[]', '""'];

/** Returns the call that the model wrote, with its name unchanged. */
function requestedTool(toolName: string, written: string): RequestedTool {
  // Some servers send an empty object before the arguments.
  const input = NO_ARGUMENTS.includes(written.trim()) ? '{}' : written.replace(/^\s*\{\s*\}(?=\s*\{)/, '');
  const toolInput = objectOf(input);
  const inexact = toolInput === null ? null : firstInexact(input);
  if (toolInput !== null && inexact === null) return { toolName, toolInput };
  return { toolName, toolInput: {}, invalidInput: firstBytes(inexact ?? input, MAX_INVALID_BYTES) };
}

/** Returns null if the text is not a JSON object, or too complex. */
function objectOf(input: string): Record<string, unknown> | null {
  try {
    checkShape(input);
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
