import type { RunTimeline } from '#contract';
import { formatCount } from '../components/format.ts';
import { FactSection } from '../components/facts.tsx';

const cost = new Intl.NumberFormat('en-GB', { maximumSignificantDigits: 4 });

/** Shows the tokens of a Run and their cost. */
export function RunUsage({ timeline: { usage, losses } }: { timeline: RunTimeline }) {
  return (
    <FactSection
      label="Usage"
      facts={{
        'Input tokens': formatCount(usage.inputTokens),
        'Cached input tokens': usage.cachedInputTokens === null ? null : formatCount(usage.cachedInputTokens),
        'Output tokens': formatCount(usage.outputTokens),
        Cost: usage.cost === null ? 'The manifest has no prices' : cost.format(usage.cost),
        'Workers lost': formatCount(losses),
      }}
    />
  );
}
