import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV3, LanguageModelV3CallOptions, SharedV3ProviderOptions } from '@ai-sdk/provider';
import { BOUNDS, causeMessage } from '#domain';
import { limitBody } from '#platform';
import { NotAllowed, type Allowances } from '../allowances.ts';
import { HarnessError } from '../harness.ts';
import { JsonShape } from '../json-shape.ts';
import { resolveSecret, SecretMissing } from '../secrets.ts';
import { baseUrlOf } from './continuation.ts';
import { fitRequest } from './fit-request.ts';
import { serverOf, type Server } from './learned-quirks.ts';
import { answerTokens, type ModelChoice, type ProviderName } from './model-settings.ts';
import type { OnOddity } from './oddities.ts';
import { reasoningFieldExtractor } from './reasoning.ts';
import { askingAgain } from './refused-fields.ts';
import { readTolerantly } from './tolerant-answer.ts';

export type Fetch = typeof globalThis.fetch;

const MAX_EVENT_BYTES = BOUNDS.answers.event.value;
const MAX_ERROR_BYTES = BOUNDS.answers.error.value;

/** Returns the key for the agent's provider, null if the manifest names none. Throws HarnessError (`provider_auth`). */
export async function resolveKey(model: ModelChoice, allowances: Allowances): Promise<string | null> {
  const { apiKey } = model;
  if (apiKey === undefined) return null;
  const refused = (cause: Error): HarnessError => {
    const report = { source: 'provider', name: new URL(baseUrlOf(model)).host, type: cause.name } as const;
    return new HarnessError('provider_auth', { cause, report: { ...report, message: causeMessage(cause.message) } });
  };
  const key = await resolveSecret(apiKey, allowances).catch((error: unknown) => {
    throw error instanceof SecretMissing || error instanceof NotAllowed ? refused(error) : error;
  });
  // The error for an invalid header would show the key.
  if (/[^\x20-\x7E]/.test(key)) {
    throw refused(new NotAllowed('The API key has characters that are not allowed in a header.'));
  }
  return key;
}

export interface AskedBy {
  /** Null if the manifest names none. */
  apiKey: string | null;
  fetch: Fetch;
  onOddity: OnOddity;
  /** What is known about the model's server. Default: the profile of its host. */
  server?: Server;
}

/** Returns the client of the agent's model. It reads no variables of the process except the key. */
export function languageModel(
  model: ModelChoice,
  { apiKey, fetch, onOddity, server = serverOf(model) }: AskedBy,
): LanguageModelV3 {
  const options = { baseURL: baseUrlOf(model), fetch: withReadableAnswers(fetch, model.provider, onOddity) };
  if (model.provider === 'anthropic') return createAnthropic({ ...options, apiKey: apiKey ?? '' })(model.name);
  return createOpenAICompatible({
    ...options,
    ...(apiKey === null ? {} : { apiKey }),
    fetch: askingAgain(options.fetch, server, onOddity),
    name: 'openaiCompatible',
    includeUsage: true,
    metadataExtractor: reasoningFieldExtractor,
    transformRequestBody: (body) => fitRequest(body, server.quirks),
  })(model.name);
}

/** An output limit that every model accepts. Providers refuse a limit above the model's own, which is not known here. */
const SAFE_ANSWER_TOKENS = 4_096;

/**
 * Returns the settings of one call according to the manifest. `thinks`: whether the model may think in this call. `tokensLeft`: the
 * most tokens that the answer may have. If the manifest has no limit, it is sent only when it is so small that no model refuses it.
 */
export function callSettings(
  model: ModelChoice,
  thinks: boolean,
  tokensLeft = Infinity,
): Pick<LanguageModelV3CallOptions, 'temperature' | 'maxOutputTokens' | 'providerOptions'> {
  const { temperature, maxOutputTokens, thinkingTokens, reasoningEffort } = model.settings ?? {};
  const common = temperature === undefined ? {} : { temperature };
  if (model.provider === 'openai-compatible') {
    const most = maxOutputTokens ?? Math.min(SAFE_ANSWER_TOKENS, answerTokens(model));
    const limit = tokensLeft < most ? tokensLeft : maxOutputTokens;
    const providerOptions = { openaiCompatible: { reasoningEffort } } as SharedV3ProviderOptions;
    return {
      ...common,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
      ...(reasoningEffort === undefined ? {} : { providerOptions }),
    };
  }
  const most = Math.min(answerTokens(model), tokensLeft);
  // The model does not think if that would use up the rest.
  const budgetTokens = thinks && thinkingTokens !== undefined && thinkingTokens < most ? thinkingTokens : 0;
  // Explicit, because some models think by default.
  const thinking = budgetTokens > 0 ? { type: 'enabled', budgetTokens } : { type: 'disabled' };
  // This protocol requires a limit, and the package adds the thinking budget to it.
  const limit = { maxOutputTokens: most - budgetTokens };
  return { ...common, ...limit, providerOptions: { anthropic: { thinking } } };
}

/** Limits what is read before it is parsed, and rewrites answers so that the provider's package can read them. */
function withReadableAnswers(fetch: Fetch, provider: ProviderName, onOddity: OnOddity): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    if (response.ok) return readTolerantly(withBoundedEvents(response), { provider, onOddity });
    const { status, statusText, headers } = response;
    return new Response(await firstOf(response.body), { status, statusText, headers });
  };
}

/** Reads the body as events, whatever its content type. It fails with BodyTooLarge or MessageTooComplex before parsing. */
function withBoundedEvents(response: Response): Response {
  const shape = new JsonShape('event');
  return limitBody(response, {
    maxBytes: MAX_EVENT_BYTES,
    turn: { events: BOUNDS.messages.events.value, bytes: BOUNDS.messages.parsedTogether.value },
    isStream: true,
    onChunk: (piece) => shape.take(piece),
  });
}

async function firstOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the rest.
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= MAX_ERROR_BYTES) break;
  }
  return new Uint8Array(Buffer.concat(pieces)).subarray(0, MAX_ERROR_BYTES);
}
