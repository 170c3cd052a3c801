import { writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CountResult } from './counts/count-result.ts';
import type { LatencyResult } from './latency-result.ts';
import { compare, ROUND_MS, type Comparison } from './measure.ts';
import type { NodeProcess } from './processes.ts';
import { formatSummary, startProfile, summarise } from './profile.ts';
import type { Report } from './report.ts';
import type { Services } from './services.ts';

/** The tools of one benchmark. */
export interface Bench {
  services: Services;
  /** Whether processes shall be started so that they can be profiled. */
  profiled: boolean;
  /** Measures and prints. `processes` are those of the subject, if it does not run in this process. */
  compare: (comparison: Comparison, processes?: NodeProcess[]) => Promise<void>;
  /** Prints the counts. */
  count: (result: CountResult) => void;
  /** Prints the latency. */
  addLatency: (result: LatencyResult) => void;
}

export type Benchmark = (bench: Bench) => Promise<void>;

/** Prints each result as a line of JSON, and keeps it for the tables at the end. */
export function createReporter(services: Services, profiled: boolean) {
  const report: Report = { results: [], counts: [], latencies: [] };
  const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const benchFor = (benchmark: string): Bench => ({
    services,
    profiled,
    compare: async (comparison, processes) => {
      const result = { benchmark, ...(await compare(comparison)) };
      report.results.push(result);
      print(result);
      // Profiles a separate round, so that profiling does not affect the figures.
      if (profiled) await printProfiles(comparison, processes);
    },
    count: (result) => {
      report.counts.push(result);
      print({ benchmark, ...result });
    },
    addLatency: (result) => {
      report.latencies.push(result);
      print({ benchmark, ...result });
    },
  });
  return { report, benchFor };
}

async function printProfiles({ name, clients, subject }: Comparison, processes?: NodeProcess[]): Promise<void> {
  const title = `${name}, ${clients} ${clients === 1 ? 'client' : 'clients'}`;
  const work = () => subject(ROUND_MS);
  if (processes === undefined) {
    const stop = await startProfile();
    await work();
    print(title, await stop());
    return;
  }
  // Nested, so that all of them are profiled over the same round.
  const profileFrom = async (i: number): Promise<void> => {
    const [next] = processes.slice(i, i + 1);
    if (next === undefined) return void (await work());
    print(`${title}: ${next.name}`, await next.profile(() => profileFrom(i + 1)));
  };
  await profileFrom(0);
}

/** In short, and as a file that Chrome's DevTools open. */
function print(title: string, profile: Profiler.Profile): void {
  const file = join(tmpdir(), `spool-bench-${title.replaceAll(/\W+/g, '-')}.cpuprofile`);
  writeFileSync(file, JSON.stringify(profile));
  process.stderr.write(`\n${formatSummary(title, summarise(profile))}\n all of it: ${file}\n\n`);
}
