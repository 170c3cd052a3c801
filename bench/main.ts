import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createReporter } from './bench.ts';
import { BENCHMARKS, ON_PAGE } from './benchmarks.ts';
import { describeConditions, type Conditions } from './conditions.ts';
import { formatResults, replaceResults } from './page.ts';
import { formatTables, type Report } from './report.ts';
import { openServices } from './services.ts';

const ALL = Object.keys(BENCHMARKS);

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      profile: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      page: { type: 'string', default: resolve(import.meta.dirname, '../../docs/benchmarks.md') },
    },
  });
  if (values.list) return void process.stdout.write(`${ALL.join('\n')}\n`);
  const unknown = positionals.filter((name) => !ALL.includes(name));
  if (unknown.length > 0) throw new Error(`Unknown benchmark ${unknown.join(', ')}; known are ${ALL.join(', ')}`);
  const names = positionals.length > 0 ? positionals : ON_PAGE;
  if (values.write && names !== ON_PAGE) {
    throw new Error('--write needs all benchmarks, because the page states one commit; omit the names.');
  }
  // Checks the markers first, so that a page without them fails before the run.
  if (values.write) replaceResults(readFileSync(values.page, 'utf8'), '');

  const { conditions, report } = await runBenchmarks(names, values.profile);
  process.stdout.write(`\n${formatTables(report)}\n`);
  if (!values.write) return;
  if (process.exitCode) throw new Error(`A benchmark failed; ${values.page} was not changed.`);
  writeFileSync(values.page, replaceResults(readFileSync(values.page, 'utf8'), formatResults(conditions, report)));
  process.stderr.write(`Results written to ${values.page}\n`);
}

/** Runs the benchmarks one after the other. A failed benchmark sets the exit code; the others still run. */
async function runBenchmarks(names: string[], profiled: boolean): Promise<{ conditions: Conditions; report: Report }> {
  const services = await openServices();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void services.close().finally(() => process.exit(1)));
  }
  try {
    const conditions = await describeConditions(services);
    process.stdout.write(`${JSON.stringify(conditions)}\n`);
    const reporter = createReporter(services, profiled);
    for (const name of names) {
      await BENCHMARKS[name]?.(reporter.benchFor(name)).catch((error: unknown) => {
        process.stderr.write(`${name} failed: ${error instanceof Error ? error.stack : String(error)}\n`);
        process.exitCode = 1;
      });
    }
    return { conditions, report: reporter.report };
  } finally {
    await services.close();
  }
}

await main();
