import { baseUrlOf } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';

type GivenQuirks = NonNullable<ModelChoice['quirks']>;

/** How the requests to a server differ. docs/models.md explains each quirk. */
export type Quirks = { [Name in keyof GivenQuirks]-?: NonNullable<GivenQuirks[Name]> };
export type OptionalField = Quirks['leaveOut'][number];

/** The default: no known server refuses it, or Spool learns of it by one more request. Local servers run any template. */
const USUAL_QUIRKS: Quirks = {
  leaveOut: [],
  answerLimit: 'max_tokens',
  roles: 'merged',
  callIds: 'short',
  reasoning: 'turn',
  schemas: 'json-schema',
};

interface ServerProfile {
  server: string;
  /** Matches the hosts of the server; null if it can run anywhere. */
  host: RegExp | null;
  /** The differences from the default, each with its public source. */
  quirks: { [Name in keyof Quirks]?: readonly [value: Quirks[Name], source: string] };
}

/** One row for each server. docs/models.md has the same rows with an example and known limits. */
export const SERVER_PROFILES: readonly ServerProfile[] = [
  {
    server: 'OpenAI',
    host: /^(.+\.)?api\.openai\.com$/,
    quirks: {
      answerLimit: ['max_completion_tokens', 'https://github.com/teilomillet/gollm/issues/33'],
    },
  },
  {
    server: 'Azure OpenAI',
    host: /^.+\.(openai|cognitiveservices)\.azure\.com$/,
    quirks: {
      answerLimit: ['max_completion_tokens', 'https://github.com/anomalyco/opencode/issues/37964'],
    },
  },
  {
    server: 'DeepSeek',
    host: /^api\.deepseek\.com$/,
    quirks: { reasoning: ['all', 'https://api-docs.deepseek.com/guides/thinking_mode'] },
  },
  {
    server: 'Moonshot (Kimi)',
    host: /^api\.moonshot\.(ai|cn)$/,
    quirks: { reasoning: ['all', 'https://github.com/continuedev/continue/pull/11806'] },
  },
  {
    server: 'Mistral',
    host: /^(api|codestral)\.mistral\.ai$/,
    quirks: {
      leaveOut: [['stream_options'], 'https://github.com/avante-corp/avante.nvim/issues/2347'],
      roles: ['alternating', 'https://github.com/zed-industries/zed/pull/31736'],
      reasoning: ['none', 'https://github.com/BerriAI/litellm/issues/30835'],
    },
  },
  {
    server: 'Groq',
    host: /^api\.groq\.com$/,
    quirks: { reasoning: ['none', 'https://github.com/janhq/jan/issues/8136'] },
  },
  {
    server: 'Gemini',
    host: /^generativelanguage\.googleapis\.com$/,
    quirks: {
      schemas: ['openapi', 'https://adam.strojek.info/posts/2025-07-10-uncovering-limitations-of-gemini-over-openai'],
    },
  },
  {
    server: 'Vertex AI',
    host: /^(.+[-.])?aiplatform\.googleapis\.com$/,
    quirks: { schemas: ['openapi', 'https://cloud.google.com/vertex-ai/docs/reference/rest/v1/Schema'] },
  },
  { server: 'Amazon Bedrock', host: /^bedrock-(runtime|mantle)\..+\.(amazonaws\.com|api\.aws)$/, quirks: {} },
  { server: 'Qwen (Model Studio)', host: /^(.+\.)?(dashscope(-\w+)?|maas)\.aliyuncs\.com$/, quirks: {} },
  { server: 'OpenRouter', host: /^openrouter\.ai$/, quirks: {} },
  { server: 'Ollama', host: null, quirks: {} },
  { server: 'vLLM', host: null, quirks: {} },
  { server: 'llama.cpp', host: null, quirks: {} },
  { server: 'LM Studio', host: null, quirks: {} },
  { server: 'LiteLLM', host: null, quirks: {} },
];

/**
 * Returns the quirks of the model's server. Each one comes from the manifest, else from what was `learned`, else from the
 * profile of the host, else from the default.
 */
export function quirksOf(model: ModelChoice, learned: Partial<Quirks> = {}): Quirks {
  const { hostname } = new URL(baseUrlOf(model));
  const profile = SERVER_PROFILES.find(({ host }) => host?.test(hostname))?.quirks ?? {};
  const known = Object.fromEntries(Object.entries(profile).map(([name, [value]]) => [name, value]));
  return { ...USUAL_QUIRKS, ...(known as Partial<Quirks>), ...learned, ...(model.quirks as Partial<Quirks>) };
}
