import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { collectProcessMetrics, configSchema, scrape } from '#platform';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Alerts {
  groups: { rules: { alert: string; expr: string; for: string; annotations: { summary: string } }[] }[];
}
interface Dashboard {
  panels: { id: number; title: string; targets?: { expr: string }[] }[];
}
interface Compose {
  services: Record<string, { environment?: Record<string, string>; volumes?: string[] }>;
  volumes: Record<string, unknown>;
}

const alerts = (parse(read('docker/prometheus/alerts.yml')) as Alerts).groups.flatMap(({ rules }) => rules);
const { panels } = JSON.parse(read('docker/grafana/dashboards/spool.json')) as Dashboard;
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));

/** Of Prometheus itself. */
const FOREIGN = ['up'];

/** What a process gives: a histogram's are three. */
async function knownNames(): Promise<Set<string>> {
  const { text } = await scrape();
  const declared = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => ({ name, type }));
  const parts = ({ name, type }: (typeof declared)[number]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
  return new Set([...declared.flatMap(parts), ...FOREIGN]);
}

beforeAll(() => collectProcessMetrics());

/** Names of metrics in an expression, and whether it can be read. */
function readExpression(expression: string): { metrics: string[]; isValid: boolean } {
  // Grafana's own: any duration is as good here.
  const promql = expression.replaceAll('$__rate_interval', '5m');
  const metrics: string[] = [];
  let isValid = true;
  parser.parse(promql).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) isValid = false;
      if (type.name === 'Identifier') metrics.push(promql.slice(from, to));
    },
  });
  return { metrics, isValid };
}

test('an expression that cannot be read, or names what is not there, is noticed', async () => {
  expect(readExpression('sum(rate(spool_appends_total[5m])').isValid).toBe(false);
  const { metrics } = readExpression('sum by (le) (rate(spool_append_seconds_bucket{outcome="ok"}[5m]))');
  expect(metrics).toEqual(['spool_append_seconds_bucket']);
  expect(await knownNames()).not.toContain('spool_append_seconds_bucket');
});

test.each([...alerts.map(({ alert, expr }) => [alert, expr] as const), ...queries])(
  '%s asks only for metrics that exist: %s',
  async (_, expression) => {
    const { metrics, isValid } = readExpression(expression);
    expect(isValid).toBe(true);
    expect(metrics).not.toEqual([]);
    const known = await knownNames();
    expect(metrics.filter((name) => !known.has(name))).toEqual([]);
  },
);

test('each alert has its runbook, and each runbook its alert', () => {
  const runbooks = [...read('docs/operations/runbooks.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  expect(runbooks.toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
});

test('each runbook tells what it means, how to see it and how to mend it', () => {
  for (const part of read('docs/operations/runbooks.md').split(/^## /m).slice(1)) {
    expect(part).toMatch(/\*\*Means:\*\* [^]+\*\*See:\*\* [^]+\*\*Mend:\*\* /);
  }
});

test('what runbooks name in code and is a metric exists', async () => {
  const names = read('docs/operations/runbooks.md').match(/\bspool_[a-z_]+\b/g) ?? [];
  const known = await knownNames();
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test('the containers are given only settings that exist, and files that are there', () => {
  const { services, volumes } = parse(read('docker/compose.yaml'), { merge: true }) as Compose;
  const foreign = /^(AWS_|OPENAI_API_KEY$|ANTHROPIC_API_KEY$|OTEL_)/;
  for (const name of ['api', 'worker']) {
    const given = Object.keys(services[name]?.environment ?? {}).filter((variable) => !foreign.test(variable));
    expect(given.length).toBeGreaterThan(3);
    expect(given.filter((variable) => !(variable in configSchema.shape))).toEqual([]);
  }
  const mounted = Object.values(services).flatMap((service) => service.volumes ?? []);
  for (const mount of mounted) {
    const [source = ''] = mount.split(':');
    expect(source.startsWith('./') ? existsSync(join(root, 'docker', source)) : source in volumes).toBe(true);
  }
});
