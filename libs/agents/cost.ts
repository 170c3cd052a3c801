import type { TokenUsage } from '#domain';
import type { AgentManifest } from './manifest.ts';

export type Prices = NonNullable<NonNullable<AgentManifest['model']>['prices']>;

/** Returns the prices of the Agent's first model, or of a fallback model by its place from 1; null if they are not known. */
export function pricesOfModel({ model, fallbackModels = [] }: AgentManifest, fallback = 0): Prices | null {
  return (fallback === 0 ? model : fallbackModels[fallback - 1])?.prices ?? null;
}

/** What the tokens cost, in the currency of the prices. */
export function costOf({ inputTokens, outputTokens, cachedInputTokens = 0 }: TokenUsage, prices: Prices): number {
  const { input, output, cachedInput = input } = prices;
  const uncached = Math.max(0, inputTokens - cachedInputTokens);
  return (uncached * input + cachedInputTokens * cachedInput + outputTokens * output) / 1_000_000;
}
