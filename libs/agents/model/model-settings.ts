import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ModelCandidate } from '../harness.ts';
import type { AgentManifest } from '../manifest.ts';
import { patternIssues } from '../pattern-issues.ts';
import { manifestIssues, type ManifestIssue } from '../manifest-issues.ts';

export type ModelChoice = NonNullable<AgentManifest['model']>;
export type ProviderName = ModelChoice['provider'];

const harnessSchema = z.strictObject({ name: z.string() });

/** The default address for each protocol. */
export const BASE_URLS: Record<ProviderName, string> = {
  'openai-compatible': 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
};

/** The default context window for each protocol, tokens. */
const CONTEXT_TOKENS: Record<ProviderName, number> = { 'openai-compatible': 128_000, anthropic: 200_000 };

/** Returns the id of the server and of the reference to its key (`ModelCandidate.circuit`). It reveals neither. */
function circuitOf({ provider, baseUrl = BASE_URLS[provider], apiKey }: ModelChoice): string {
  const shared = JSON.stringify([new URL(baseUrl).origin, apiKey ?? null]);
  return createHash('sha256').update(shared).digest('hex').slice(0, 32);
}

/** Tokens kept free for an answer without a limit; at most a quarter of the window. */
const ANSWER_TOKENS = 8_000;

export function windowTokens({ provider, contextTokens }: ModelChoice): number {
  return contextTokens ?? CONTEXT_TOKENS[provider];
}

/** Returns how many tokens of the window are kept free for the answer, including thinking. */
export function answerTokens(model: ModelChoice): number {
  const { maxOutputTokens, thinkingTokens = 0 } = model.settings ?? {};
  return maxOutputTokens ?? thinkingTokens + Math.min(ANSWER_TOKENS, Math.floor(windowTokens(model) / 4));
}

/** Returns the answer limit that is sent if the Run has more tokens left; Infinity if none is sent. */
export function answerLimit(model: ModelChoice): number {
  return model.provider === 'anthropic' ? answerTokens(model) : (model.settings?.maxOutputTokens ?? Infinity);
}

export function takesImages({ provider, images }: ModelChoice): boolean {
  return images ?? provider === 'anthropic';
}

/** Returns the models of a manifest, the preferred one first. */
export function candidatesOf(manifest: AgentManifest): ModelCandidate[] {
  const { model, fallbackModels = [] } = manifest;
  if (model === undefined) return [];
  return [model, ...fallbackModels].map((each, i) => ({
    manifest: i === 0 ? manifest : { ...manifest, model: each },
    circuit: circuitOf(each),
    ...(fallbackModels.length === 0 ? {} : { model: { name: each.name, ...(i === 0 ? {} : { fallback: i }) } }),
  }));
}

/** Returns the problems of a manifest for the harness `model`, each with its path. */
export function modelIssues(manifest: AgentManifest): ManifestIssue[] {
  const { harness, model, fallbackModels = [] } = manifest;
  const unknown = [
    ...manifestIssues(harnessSchema, harness).map((issue) => ({ ...issue, path: ['harness', ...issue.path] })),
    ...patternIssues(manifest),
  ];
  if (model === undefined) return [...unknown, { path: ['model'], at: 'value', message: 'is missing' }];
  return [
    ...unknown,
    ...brokenRules(model, ['model']),
    ...fallbackModels.flatMap((each, i) => brokenRules(each, ['fallbackModels', i])),
  ];
}

const brokenRules = (model: ModelChoice, place: readonly (string | number)[]): ManifestIssue[] =>
  RULES.filter(({ isBroken }) => isBroken(model)).map(({ path, message }) => {
    return { path: [...place, ...path], at: 'value', message };
  });

interface Rule {
  /** Within the model. */
  path: readonly string[];
  message: string;
  isBroken: (model: ModelChoice) => boolean;
}

const setting = (name: string): string[] => ['settings', name];

const RULES: Rule[] = [
  {
    path: ['apiKey'],
    message: 'is missing; anthropic needs a key',
    isBroken: (model) => model.provider === 'anthropic' && model.apiKey === undefined,
  },
  {
    path: setting('temperature'),
    message: 'must be at most 1 with anthropic',
    isBroken: (model) => model.provider === 'anthropic' && (model.settings?.temperature ?? 0) > 1,
  },
  {
    path: setting('thinkingTokens'),
    message: 'is for anthropic only',
    isBroken: (model) => model.provider !== 'anthropic' && model.settings?.thinkingTokens !== undefined,
  },
  {
    path: setting('thinkingTokens'),
    message: 'must be less than maxOutputTokens',
    isBroken: (model) => {
      const { thinkingTokens = 0, maxOutputTokens = Infinity } = model.settings ?? {};
      return thinkingTokens >= maxOutputTokens;
    },
  },
  {
    path: setting('reasoningEffort'),
    message: 'is for openai-compatible only',
    isBroken: (model) => model.provider !== 'openai-compatible' && model.settings?.reasoningEffort !== undefined,
  },
  {
    path: ['quirks'],
    message: 'is for openai-compatible only',
    isBroken: (model) => model.provider !== 'openai-compatible' && model.quirks !== undefined,
  },
  {
    path: setting('maxOutputTokens'),
    message:
      'must be less than the context window (contextTokens); if unset, thinkingTokens must leave room for an answer',
    isBroken: (model) => answerTokens(model) >= windowTokens(model),
  },
];
