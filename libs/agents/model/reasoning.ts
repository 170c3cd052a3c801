import type { MetadataExtractor } from '@ai-sdk/openai-compatible';
import type { TranscriptMessage } from '../harness.ts';
import { REASONING_FIELDS, readContinuation, type Reasoning } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';
import type { Quirks } from './server-profiles.ts';

type ReasoningField = Reasoning['field'];

/** The key of the field's name in the provider metadata at the end of an answer. */
const PROVIDER = 'openaiCompatible';

/** Extracts the name of the field in which a server sends reasoning. */
export const reasoningFieldExtractor: MetadataExtractor = {
  extractMetadata: () => Promise.resolve(undefined),
  createStreamExtractor: () => {
    let reasoningField: ReasoningField | undefined;
    return {
      processChunk: (chunk: unknown) => void (reasoningField ??= fieldOf(chunk)),
      buildMetadata: () => (reasoningField === undefined ? undefined : { [PROVIDER]: { reasoningField } }),
    };
  },
};

/** Returns the field with reasoning in a chunk of any shape. */
function fieldOf(chunk: unknown): ReasoningField | undefined {
  const { choices } = fieldsOf(chunk);
  const delta = fieldsOf(fieldsOf(Array.isArray(choices) ? choices[0] : null).delta);
  return REASONING_FIELDS.find((field) => typeof delta[field] === 'string' && delta[field] !== '');
}

const fieldsOf = (value: unknown): Record<string, unknown> => Object(value) as Record<string, unknown>;

/** Returns the field that `reasoningFieldExtractor` has reported. */
export function reportedField(
  metadata: Record<string, Record<string, unknown>> | undefined,
): ReasoningField | undefined {
  return REASONING_FIELDS.find((field) => field === metadata?.[PROVIDER]?.reasoningField);
}

/**
 * Returns the reasoning that goes back to the server, by its message. `turn`: the messages since the last user message; `all`:
 * all messages. Leaves out reasoning of another model or server.
 */
export function returnedReasoning(
  model: ModelChoice,
  which: Quirks['reasoning'],
  transcript: readonly TranscriptMessage[],
): ReadonlyMap<TranscriptMessage, Reasoning> {
  const returned = new Map<TranscriptMessage, Reasoning>();
  if (which === 'none' || model.provider !== 'openai-compatible') return returned;
  const from = which === 'all' ? 0 : transcript.findLastIndex(({ role }) => role === 'user') + 1;
  for (const message of transcript.slice(from)) {
    if (message.role !== 'assistant') continue;
    const reasoning = readContinuation(model, message.continuation)?.reasoning;
    if (reasoning !== undefined) returned.set(message, reasoning);
  }
  return returned;
}
