import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { collectProcessMetrics, configSchema, describeMetrics, loadConfig, scrape } from '#platform';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Alerts {
  groups: { rules: { alert: string; expr: string; for: string; annotations: { summary: string } }[] }[];
}
interface Dashboard {
  panels: { id: number; title: string; targets?: { expr: string }[] }[];
}
interface Service {
  environment?: Record<string, string>;
  volumes?: string[];
  command?: string[];
  secrets?: string[];
}
interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { file: string }>;
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

/** Each package declares its metrics in a file of this name. */
const declarations = ['apps', 'libs'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => basename(path) === 'metrics.ts')
    .map((path) => join(root, folder, path)),
);

beforeAll(async () => {
  for (const path of declarations) await import(path);
  collectProcessMetrics();
});

test('metrics.md lists every metric by its name, type and labels', () => {
  const rows = [...read('docs/operations/metrics.md').matchAll(/^\| `(spool_\w+)` \| (\w+) \| (.*?) ?\| [AWI ]+ \|/gm)];
  const documented = rows.map(([, name = '', type, labels = '']) => {
    return { name, type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label) };
  });
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  expect(documented.toSorted(byName)).toEqual(describeMetrics().toSorted(byName));
});

test('counters end in _total, and histograms in _seconds', () => {
  for (const { name, type } of describeMetrics()) {
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    if (type === 'histogram') expect(name).toMatch(/_seconds$/);
  }
});

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
    expect(part).toMatch(/\*\*Means:\*\* [^]+\*\*See:\*\* [^]+\*\*Fix:\*\* /);
  }
});

test('what runbooks name in code and is a metric exists', async () => {
  const names = read('docs/operations/runbooks.md').match(/\bspool_[a-z_]+\b/g) ?? [];
  const known = await knownNames();
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

const compose = parse(read('docker/compose.yaml'), { merge: true }) as Compose;
const { services, volumes, secrets } = compose;

/** Puts the default values in place of variables. */
const withDefaults = (text: string): string => text.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1');

/** Returns the path of the trial file that a container has as `/run/secrets/<name>`. */
const secretFile = (name: string): string => join(root, 'docker', withDefaults(secrets[name]!.file));

test('the containers are given only settings that exist, and files that are there', () => {
  const foreign = /^(AWS_|OPENAI_API_KEY$|ANTHROPIC_API_KEY$|OTEL_)/;
  for (const name of ['api', 'worker']) {
    const environment = Object.entries(services[name]!.environment!).map(([variable, value]) => [
      variable,
      withDefaults(String(value)).replace(/^\/run\/secrets\/(.*)$/, (_, secret: string) => secretFile(secret)),
    ]);
    const given = environment
      .map(([variable]) => variable!.replace(/_FILE$/, ''))
      .filter((each) => !foreign.test(each));
    expect(given.length).toBeGreaterThan(3);
    expect(given.filter((variable) => !(variable in configSchema.shape))).toEqual([]);
    expect(loadConfig(Object.fromEntries(environment) as Record<string, string>)).toMatchObject({
      DATABASE_URL: 'postgres://spool_app:spool-app@postgres:5432/spool',
      QUEUE_URL: 'redis://redis:6379',
    });
  }
  const mounted = Object.values(services).flatMap((service) => service.volumes ?? []);
  for (const mount of mounted) {
    const [source = ''] = mount.split(':');
    expect(source.startsWith('./') ? existsSync(join(root, 'docker', source)) : source in volumes).toBe(true);
  }
});

test('the containers have passwords only in files', () => {
  const used = new Set<string>();
  for (const [name, service] of Object.entries(services)) {
    const given = service.secrets ?? [];
    const named = [...JSON.stringify(service).matchAll(/\/run\/secrets\/([\w-]+)/g)].map(([, secret]) => secret!);
    expect([name, [...new Set(named)].sort()]).toEqual([name, [...given].sort()]);
    given.forEach((secret) => used.add(secret));
    const variables = Object.keys(service.environment ?? {});
    expect(
      variables.filter((each) => /PASSWORD|SECRET|DATABASE_URL|QUEUE_URL/.test(each) && !/_FILE$/.test(each)),
    ).toEqual([]);
  }
  expect([...used].sort()).toEqual(Object.keys(secrets).sort());
});

test('only the container that migrates is given the owner of the database', () => {
  expect(readFileSync(secretFile('database-url'), 'utf8')).toMatch(/^postgres:\/\/spool_app:/);
  const withOwner = Object.keys(services).filter((name) => services[name]!.secrets?.includes('postgres-password'));
  expect(withOwner.sort()).toEqual(['migrate', 'postgres']);
  expect(services['migrate']!.command!.join(' ')).toMatch(/main\.js migrate --owner-url postgres:\/\/spool@postgres:/);
});
