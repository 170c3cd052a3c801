import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reportFigure, type ReportedLatency } from '#testing';
import type { Bench } from './bench.ts';
import { summariseLatencies } from './latency-result.ts';
import { describeLatency } from './report.ts';
import { type MeasuringTests, runSpecs } from './run-specs.ts';
import { SIZE_NAME } from './sizes.ts';

/** Three by default, because a round takes minutes. */
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);

interface LatencyPromise extends MeasuringTests {
  name: string;
}

/** The tiny size runs only the first, which takes the least time. */
const PROMISES: LatencyPromise[] = [
  { name: 'CPU of a start', file: 'test/start\\.e2e', tests: 'starts the (api|worker|standalone)' },
  { name: 'interrupt', file: 'test/interrupt\\.e2e', tests: 'under load closes provider and tool calls' },
  { name: 'recovery after kill -9', file: 'test/faults/workers\\.e2e', tests: 'killed at each moment of a Run' },
  { name: 'hand-over', file: 'test/faults/rolling-workers\\.e2e', tests: 'is claimed by another worker' },
  { name: 'fair share', file: 'test/faults/fair-slots\\.e2e', tests: 'beside a backlog .* in Redis' },
  { name: 'console pages', file: 'test/console/speed\\.e2e', tests: 'each page shows first data' },
  { name: 'creates without Redis', file: 'test/faults/redis-faults\\.e2e', tests: 'creates and streams continue' },
];

/** Measures latency promises in real processes. In each round it runs the tests that report them, one after the other. */
export async function latency({ addLatency }: Bench): Promise<void> {
  const promises = SIZE_NAME === 'tiny' ? PROMISES.slice(0, 1) : PROMISES;
  const rounds = promises.map((promise) => ({ promise, reported: [] as ReportedLatency[][] }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { promise, reported } of rounds) reported.push(await measure(promise));
  }
  const results = rounds.flatMap(({ promise, reported }) => summariseLatencies(promise.name, reported));
  for (const result of results) {
    addLatency(result);
    reportFigure(describeLatency(result));
  }
  const missing = results.filter(({ verdict }) => verdict === 'no result').map(({ name }) => name);
  if (missing.length > 0) throw new Error(`No result for: ${missing.join('; ')}`);
}

/** Returns the latencies that the tests report, or none if a test fails. */
async function measure(promise: LatencyPromise): Promise<ReportedLatency[]> {
  const folder = mkdtempSync(join(tmpdir(), 'spool-latency-'));
  const latencies = join(folder, 'latencies');
  // The row of the night part gets the summary, not the figures of single tests. Long forms take minutes.
  const { SPOOL_FIGURES_FILE: _figures, SPOOL_LONG: _long, ...env } = process.env;
  try {
    const startedAt = performance.now();
    const passed = await runSpecs(promise, { ...env, SPOOL_LATENCIES_FILE: latencies });
    process.stderr.write(`${promise.name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s\n`);
    if (!passed || !existsSync(latencies)) return [];
    const lines = readFileSync(latencies, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as ReportedLatency);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
