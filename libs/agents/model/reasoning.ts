import type { MetadataExtractor } from '@ai-sdk/openai-compatible';
import { REASONING_FIELDS, type Reasoning } from './continuation.ts';

type ReasoningField = Reasoning['field'];

/** Where the package reports the field, in the metadata of the end of an answer. */
const PROVIDER = 'openaiCompatible';

/** Reports in which field of its chunks a server sends reasoning. */
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

/** Takes chunks of any shape. */
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
