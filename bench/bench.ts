import { writeFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compare, ROUND_MS, type Comparison, type Result } from './measure.ts';
import type { NodeProcess } from './processes.ts';
import { formatSummary, startProfile, summarise } from './profile.ts';
import type { Services } from './services.ts';

/** What a benchmark is given. */
export interface Bench {
  services: Services;
  /** Whether processes shall be started so that they can be profiled. */
  profiled: boolean;
  /** Measures and prints. `processes`: where the subject works, when that is not here. */
  compare: (comparison: Comparison, processes?: NodeProcess[]) => Promise<void>;
}

export type Benchmark = (bench: Bench) => Promise<void>;

/** Keeps the results for the table at the end. */
export function createBench(services: Services, profiled: boolean): Bench & { results: Result[] } {
  const results: Result[] = [];
  return {
    services,
    profiled,
    results,
    compare: async (comparison, processes) => {
      const result = await compare(comparison);
      results.push(result);
      process.stdout.write(`${JSON.stringify(result)}\n`);
      // A round more, so that profiling does not change what was measured.
      if (profiled) await printProfiles(comparison, processes);
    },
  };
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
