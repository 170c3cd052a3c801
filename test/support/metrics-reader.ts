import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A scrape: the value of each series, by its name and labels as they are written. */
export type Scraped = ReadonlyMap<string, number>;

/** Scrapes metrics again and again, and remembers all values that each has had. */
export class MetricsReader {
  private readonly values = new Map<string, Set<string>>();

  /** Of the process with this output, whose METRICS_PORT is 0. */
  async read({ output }: { output: () => string }): Promise<Scraped> {
    const url = metricsUrlOf(output());
    const response = await fetch(`${url}/metrics`);
    if (response.status !== 200) throw new Error(`${url}/metrics answered ${response.status}`);
    const scraped = parseMetrics(await response.text());
    this.remember(url, scraped);
    return scraped;
  }

  /** Names of the metrics of which a process has had more than one value, those that came and went included. */
  moved(): string[] {
    const moved = new Set<string>();
    for (const [key, values] of this.values) if (values.size > 1) moved.add(key.split(' ')[1]!);
    return [...moved].sort();
  }

  private remember(url: string, scraped: Scraped): void {
    const byName = new Map<string, string[]>();
    for (const [series, value] of scraped) {
      const name = series.replace(/\{.*/s, '').replace(/_(bucket|sum|count)$/, '');
      byName.set(name, [...(byName.get(name) ?? []), `${series} ${value}`]);
    }
    for (const name of new Set([...byName.keys(), ...documentedMetrics()])) {
      const key = `${url} ${name}`;
      const values = this.values.get(key) ?? new Set();
      this.values.set(key, values.add((byName.get(name) ?? []).join('\n')));
    }
  }
}

/** Where a process serves metrics without a token, as it has logged. */
export function metricsUrlOf(output: string): string {
  const [, url] = /"url":"([^"]+)"[^\n]*"metrics ready"/.exec(output) ?? [];
  if (url === undefined) throw new Error('It has no METRICS_PORT.');
  return url;
}

export function parseMetrics(text: string): Scraped {
  const lines = [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)];
  return new Map(lines.map(([, series = '', value]) => [series, Number(value)]));
}

/** The sum of the series of a metric that have all these labels. */
export function total(scraped: Scraped, name: string, ...labels: string[]): number {
  let sum = 0;
  for (const [series, value] of scraped) {
    const isOurs = series === name || series.startsWith(`${name}{`);
    if (isOurs && labels.every((label) => series.includes(label))) sum += value;
  }
  return sum;
}

/** All that docs/operations/metrics.md lists. */
export function documentedMetrics(): string[] {
  const docs = readFileSync(join(import.meta.dirname, '../../docs/operations/metrics.md'), 'utf8');
  return [...docs.matchAll(/^\| `(spool_\w+)` \|/gm)].map(([, name]) => name!).sort();
}
