import type { StoredEvent } from '#domain';
import type { LoadedThread } from './append.ts';
import { countEvents } from './count.ts';
import { metrics } from './metrics.ts';

const event = (type: string, data: object) => ({ type, data }) as unknown as StoredEvent;
const before = { summaries: { runs: new Map() } } as unknown as LoadedThread;

async function completedRuns(): Promise<number> {
  const { values } = await metrics.runsEnded.get();
  return values.find(({ labels }) => labels.outcome === 'completed')!.value;
}

test.each([-1, Number.NaN, 'many'])('counts the events after one that a metric refuses (%p tokens)', async (tokens) => {
  const counted = await completedRuns();
  const usage = event('usage.recorded', { inputTokens: tokens, outputTokens: 1 });
  countEvents(before, [usage, event('run.completed', {})]);
  expect(await completedRuns()).toBe(counted + 1);
});
