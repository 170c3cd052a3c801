import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describeMetrics, metrics, onScrape, scrape } from './metrics.ts';

jest.resetModules(); // other spec files have counted

const docs = readFileSync(join(import.meta.dirname, '../../../docs/operations/metrics.md'), 'utf8');

describe('metrics', () => {
  test('are documented, each by its name, type and labels, in the same order', () => {
    const rows = [...docs.matchAll(/^\| `(spool_\w+)` \| (\w+) \| (.*?) ?\| [AWI ]+ \|/gm)];
    const documented = rows.map(([, name, type, labels = '']) => {
      return { name, type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label) };
    });
    expect(documented).toEqual(describeMetrics());
  });

  test('have units in their names: counters end in _total, times in _seconds', () => {
    for (const { name, type } of describeMetrics()) {
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
  });

  test('start at 0 where their labels are known, and say nothing of what a process does not have', async () => {
    const { text } = await scrape();
    expect(text).toMatch(/^spool_appends_total\{outcome="refused"\} 0$/m);
    expect(text).toMatch(/^spool_provider_requests_total\{provider="anthropic",outcome="provider_unavailable"\} 0$/m);
    expect(text).toMatch(/^spool_offers_total\{path="dispatcher",outcome="failed"\} 0$/m);
    expect(text).not.toMatch(/^spool_(queue_depth|slots|database_up) /m);
  });

  const answersAnyway = async (): Promise<void> => {
    const ends = [
      onScrape(() => Promise.reject(new Error('away'))),
      onScrape(() => new Promise(() => undefined)),
      onScrape(() => metrics.slots.set(4)),
    ];
    const { text, contentType } = await scrape();
    ends.forEach((end) => end());
    metrics.slots.remove();
    expect(contentType).toMatch(/^text\/plain/);
    expect(text).toMatch(/^spool_slots 4$/m);
  };
  test('are answered though a collector fails or is silent', answersAnyway, 10_000);
});
