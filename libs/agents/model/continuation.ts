import { z } from 'zod';
import { oncePer } from '../once-per.ts';
import { BASE_URLS, type ModelChoice } from './model-settings.ts';

/** The fields in which `openai-compatible` servers send reasoning. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const;

/** The most JSON that is stored of an answer's reasoning, UTF-16 units: half of what a continuation may have. */
const MAX_REASONING = 512 * 1024;

/**
 * What this harness wants back with a message. A stored shape is a promise: a change that an older release cannot read is a
 * new version.
 */
const continuationSchema = z.object({
  harness: z.literal('model'),
  version: z.literal(1),
  /** Whose it is: signatures mean nothing to another model or server. */
  provider: z.string(),
  model: z.string(),
  baseUrl: z.string(),
  /** Estimate of the step's input, tokens: what its usage is compared with. */
  estimatedTokens: z.number().positive(),
  /** The answer's parts in their order, where one of them cannot be told from the message. */
  blocks: z
    .array(
      z.discriminatedUnion('type', [
        /** So many UTF-16 units of the message's text. */
        z.object({ type: z.literal('text'), length: z.number().int().min(0) }),
        z.object({ type: z.literal('thinking'), text: z.string(), signature: z.string() }),
        z.object({ type: z.literal('redacted'), data: z.string() }),
        /** The next of the message's tool calls; `signature` is what Gemini wants back with it. */
        z.object({ type: z.literal('call'), signature: z.string().optional() }),
      ]),
    )
    .default([]),
  /** What the model thought, and the field in which its server sent it. */
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
  // Text and calls alone follow from the message.
  const isTold = blocks.every((block) => block.type === 'text' || (block.type === 'call' && !block.signature));
  return {
    ...written(model),
    estimatedTokens,
    blocks: isTold ? [] : [...blocks],
    ...(reasoning === undefined || isTooLarge(reasoning) ? {} : { reasoning }),
  };
}

/** An answer must not fail for reasoning that only some servers want back. */
function isTooLarge({ text }: Reasoning): boolean {
  return text.length > MAX_REASONING || JSON.stringify(text).length > MAX_REASONING;
}

/** Null for what another harness, release, provider or model has left: a message goes on without it. */
export function readContinuation(model: ModelChoice, value: unknown): Continued | null {
  const read = typeof value === 'object' && value !== null ? parsed(value) : null;
  if (read === null) return null;
  const { provider, name, baseUrl } = { ...model, baseUrl: baseUrlOf(model) };
  const isOurs = read.provider === provider && read.model === name && read.baseUrl === baseUrl;
  return isOurs ? read : null;
}

/** Once: a step asks several times, and a continuation may have thousands of blocks. */
const parsed = oncePer((value: object): Continuation | null => continuationSchema.safeParse(value).data ?? null);

export function baseUrlOf({ provider, baseUrl }: ModelChoice): string {
  return baseUrl ?? BASE_URLS[provider];
}

function written(model: ModelChoice): Omit<Continuation, 'estimatedTokens' | 'blocks' | 'reasoning'> {
  const { provider, name } = model;
  return { harness: 'model', version: 1, provider, model: name, baseUrl: baseUrlOf(model) };
}
