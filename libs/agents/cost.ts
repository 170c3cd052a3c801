import type { TokenUsage } from '#domain';
import type { AgentManifest } from './manifest.ts';

export type Prices = NonNullable<NonNullable<AgentManifest['model']>['prices']>;

/** What the tokens cost, in the currency of the prices. */
export function costOf({ inputTokens, outputTokens, cachedInputTokens = 0 }: TokenUsage, prices: Prices): number {
  const { input, output, cachedInput = input } = prices;
  const uncached = Math.max(0, inputTokens - cachedInputTokens);
  return (uncached * input + cachedInputTokens * cachedInput + outputTokens * output) / 1_000_000;
}
