import { createHash } from 'node:crypto';
import { z } from 'zod';
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

/** Returns the id of the server and of the reference to its key (`Harness.circuit`). It reveals neither. */
export function circuitOf({ provider, baseUrl = BASE_URLS[provider], apiKey }: ModelChoice): string {
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

/** Returns the problems of a manifest for the harness `model`, each with its path. */
export function modelIssues(manifest: AgentManifest): ManifestIssue[] {
  const { harness, model } = manifest;
  const unknown = [
    ...manifestIssues(harnessSchema, harness).map((issue) => ({ ...issue, path: ['harness', ...issue.path] })),
    ...patternIssues(manifest),
  ];
  if (model === undefined) return [...unknown, { path: ['model'], at: 'value', message: 'is missing' }];
  const wrong = RULES.filter(({ isBroken }) => isBroken(model)).map(({ path, message }) => ({
    path,
    at: 'value' as const,
    message,
  }));
  return [...unknown, ...wrong];
}

interface Rule {
  path: readonly string[];
  message: string;
  isBroken: (model: ModelChoice) => boolean;
}

const setting = (name: string): string[] => ['model', 'settings', name];

const RULES: Rule[] = [
  {
    path: ['model', 'apiKey'],
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
    path: ['model', 'quirks'],
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
