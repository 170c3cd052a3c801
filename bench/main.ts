import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { accept } from './accept.ts';
import { append } from './append.ts';
import { createBench, type Benchmark } from './bench.ts';
import { loadAppend } from './load-append.ts';
import { longRun } from './long-run.ts';
import { rebuild } from './rebuild.ts';
import { roundTrip } from './round-trip.ts';
import { formatTable } from './report.ts';
import { openServices } from './services.ts';

const BENCHMARKS: Record<string, Benchmark> = {
  append,
  'load-append': loadAppend,
  accept,
  'round-trip': roundTrip,
  rebuild,
  'long-run': longRun,
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { profile: { type: 'boolean', default: false } },
  });
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS);
  const unknown = names.filter((name) => !(name in BENCHMARKS));
  if (unknown.length > 0)
    throw new Error(`There is no ${unknown.join(', ')}, only ${Object.keys(BENCHMARKS).join(', ')}`);

  const services = await openServices();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void services.close().finally(() => process.exit(1)));
  }
  try {
    const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), node: process.version };
    process.stdout.write(`${JSON.stringify({ ...machine, ...(await services.describe()) })}\n`);
    const bench = createBench(services, values.profile);
    // One that breaks must not take the results of the others with it.
    for (const name of names) {
      await BENCHMARKS[name]?.(bench).catch((error: unknown) => {
        process.stderr.write(`${name}: ${error instanceof Error ? error.stack : String(error)}\n`);
        process.exitCode = 1;
      });
    }
    process.stdout.write(`\n${formatTable(bench.results)}\n`);
  } finally {
    await services.close();
  }
}

await main();
