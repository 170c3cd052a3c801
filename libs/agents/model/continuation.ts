import { z } from 'zod';
import { BOUNDS } from '#domain';
import { oncePer } from '../once-per.ts';
import { BASE_URLS, type ModelChoice } from './model-settings.ts';

/** The fields in which `openai-compatible` servers send reasoning. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const;

const MAX_REASONING = BOUNDS.answers.reasoning.value;

/**
 * What this harness stores with a message and needs in later steps. Stored shapes are a promise: a change that an older release
 * cannot read needs a new version.
 */
const continuationSchema = z.object({
  harness: z.literal('model'),
  version: z.literal(1),
  /** Its origin. Signatures are only valid for the same model and server. */
  provider: z.string(),
  model: z.string(),
  baseUrl: z.string(),
  /** The estimated input of the step, tokens. It is compared with the usage. */
  estimatedTokens: z.number().positive(),
  /** The parts of the answer in order, if one of them does not follow from the message. */
  blocks: z
    .array(
      z.discriminatedUnion('type', [
        /** The next `length` UTF-16 units of the message's text. */
        z.object({ type: z.literal('text'), length: z.number().int().min(0) }),
        z.object({ type: z.literal('thinking'), text: z.string(), signature: z.string() }),
        z.object({ type: z.literal('redacted'), data: z.string() }),
        /** The next tool call of the message. Gemini refuses a call that is sent back without its `signature`. */
        z.object({ type: z.literal('call'), signature: z.string().optional() }),
      ]),
    )
    .default([]),
  /** The reasoning of the model, and the field in which its server sent it. */
  reasoning: z.object({ field: z.enum(REASONING_FIELDS), text: z.string() }).optional(),
});

type Continuation = z.infer<typeof continuationSchema>;
export type AnswerBlock = Continuation['blocks'][number];
export type Reasoning = NonNullable<Continuation['reasoning']>;

export interface Continued {
  estimatedTokens: number;
  blocks: readonly AnswerBlock[];
  reasoning?: Reasoning | undefined;
}

export function toContinuation(model: ModelChoice, { estimatedTokens, blocks, reasoning }: Continued): Continuation {
  // A list of texts and calls without signatures follows from the message.
  const isTold = blocks.every((block) => block.type === 'text' || (block.type === 'call' && !block.signature));
  return {
    ...written(model),
    estimatedTokens,
    blocks: isTold ? [] : [...blocks],
    ...(reasoning === undefined || isTooLarge(reasoning) ? {} : { reasoning }),
  };
}

/** Reasoning that is too large is dropped. An answer must not fail because of it, as only some servers need it. */
function isTooLarge({ text }: Reasoning): boolean {
  return text.length > MAX_REASONING || JSON.stringify(text).length > MAX_REASONING;
}

/** Returns null if another harness, provider or model stored it, or an unknown release: the message is sent without it. */
export function readContinuation(model: ModelChoice, value: unknown): Continued | null {
  const read = typeof value === 'object' && value !== null ? parsed(value) : null;
  if (read === null) return null;
  const { provider, name, baseUrl } = { ...model, baseUrl: baseUrlOf(model) };
  const isOurs = read.provider === provider && read.model === name && read.baseUrl === baseUrl;
  return isOurs ? read : null;
}

/** Cached, because a step reads each continuation several times, and one may have thousands of blocks. */
const parsed = oncePer((value: object): Continuation | null => continuationSchema.safeParse(value).data ?? null);

export function baseUrlOf({ provider, baseUrl }: ModelChoice): string {
  return baseUrl ?? BASE_URLS[provider];
}

function written(model: ModelChoice): Omit<Continuation, 'estimatedTokens' | 'blocks' | 'reasoning'> {
  const { provider, name } = model;
  return { harness: 'model', version: 1, provider, model: name, baseUrl: baseUrlOf(model) };
}
