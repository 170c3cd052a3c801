import type { Tool, TranscriptMessage } from '../harness.ts';
import { oncePer } from '../once-per.ts';
import { readContinuation, type AnswerBlock, type Reasoning } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';
import { STOP_MARK } from './prompt.ts';

/** Tokens of an image: one of 1,200 × 1,200 pixels, as Anthropic counts. Providers scale larger images down. */
const IMAGE_TOKENS = 1_600;
/** Tokens that providers add to each message and tool. */
const FRAME_TOKENS = 8;
export const BYTES_A_TOKEN = 4;
/** A token has at least one byte, so a larger correction would come from something else than the text. */
const MAX_CORRECTION = BYTES_A_TOKEN;
const CORRECTION_STEP = 0.25;

/** Returns the estimated tokens of a text: its bytes of UTF-8 divided by four, rounded up. */
export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN);
}

export interface CountedFor {
  model: ModelChoice;
  /** Returns whether the model is shown the file as an image. */
  isShown: (fileId: string) => boolean;
  /** The reasoning that goes back, by its message. */
  reasoning?: ReadonlyMap<TranscriptMessage, Reasoning>;
}

export function messageTokens(message: TranscriptMessage, { model, isShown, reasoning }: CountedFor): number {
  switch (message.role) {
    case 'user':
      return FRAME_TOKENS + textTokens(message.text) + imageTokens(message.fileIds, isShown);
    case 'tool':
      return FRAME_TOKENS + resultTokens(message) + imageTokens(message.fileIds ?? [], isShown);
    case 'assistant': {
      const blocks = readContinuation(model, message.continuation)?.blocks ?? [];
      const thought = textTokens(reasoning?.get(message)?.text ?? '');
      const mark = message.stopped ? FRAME_TOKENS + textTokens(STOP_MARK) : 0;
      return FRAME_TOKENS + saidTokens(message) + thought + mark + sum(blocks.map(givenBackTokens));
    }
  }
}

/** Cached for each message, so that a step does not count the whole transcript again. */
const saidTokens = oncePer((message: Extract<TranscriptMessage, { role: 'assistant' }>): number => {
  const calls = message.toolCalls.map(
    (call) => FRAME_TOKENS + textTokens(call.toolName + JSON.stringify(call.toolInput)),
  );
  return textTokens(message.text) + sum(calls);
});

/** Returns the bytes of a result in UTF-8. Cached for each message, too. */
export const bytesOfResult = oncePer((message: Extract<TranscriptMessage, { role: 'tool' }>) =>
  Buffer.byteLength(message.result),
);

function resultTokens(message: Extract<TranscriptMessage, { role: 'tool' }>): number {
  return Math.ceil(bytesOfResult(message) / BYTES_A_TOKEN);
}

export const toolTokens = oncePer(
  ({ name, description, inputSchema }: Tool): number =>
    FRAME_TOKENS + textTokens(name + description + JSON.stringify(inputSchema)),
);

/**
 * Returns the factor between the provider's tokens and the estimate: the usage of the last step divided by its estimate. It is at
 * least 1, so usage only makes estimates more careful. It is rounded up to quarters, so it rarely changes.
 */
export function correction(model: ModelChoice, transcript: readonly TranscriptMessage[]): number {
  for (const message of transcript.toReversed()) {
    if (message.role !== 'assistant' || message.usage === undefined) continue;
    const continued = readContinuation(model, message.continuation);
    if (continued === null) continue;
    const ratio = Math.ceil(message.usage.inputTokens / continued.estimatedTokens / CORRECTION_STEP) * CORRECTION_STEP;
    return Math.min(MAX_CORRECTION, Math.max(1, ratio));
  }
  return 1;
}

/** Returns the tokens of thinking with its signature. Text and calls are counted with their message. */
function givenBackTokens(block: AnswerBlock): number {
  if (block.type === 'thinking') return textTokens(block.text + block.signature);
  return block.type === 'redacted' ? textTokens(block.data) : 0;
}

function imageTokens(fileIds: readonly string[], isShown: (fileId: string) => boolean): number {
  return fileIds.filter(isShown).length * IMAGE_TOKENS;
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
