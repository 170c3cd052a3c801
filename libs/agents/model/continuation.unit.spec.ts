import { readContinuation, toContinuation } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';
import { manifestWith } from './provider.testing.ts';

const model = manifestWith({}).model as ModelChoice;
const stored = (text: string) => {
  const reasoning = { field: 'reasoning' as const, text };
  const written: unknown = JSON.parse(
    JSON.stringify(toContinuation(model, { estimatedTokens: 1, blocks: [], reasoning })),
  );
  return readContinuation(model, written)?.reasoning;
};

it('stores reasoning with the name of its field, unless it is too large', () => {
  expect(stored('Hm.')).toEqual({ field: 'reasoning', text: 'Hm.' });
  expect(stored('x'.repeat(500_000))?.text).toHaveLength(500_000);
  // Escaped it is longer.
  for (const text of ['x'.repeat(600_000), '\n'.repeat(300_000)]) expect(stored(text)).toBeUndefined();
});

it('reads what the previous release stored', () => {
  const { reasoning: _, ...before } = toContinuation(model, { estimatedTokens: 7, blocks: [] });
  expect(readContinuation(model, before)).toMatchObject({ estimatedTokens: 7, blocks: [] });
});
