import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { resolve } from 'node:path';
import { ROUND_MS, ROUNDS } from './measure.ts';
import type { Services } from './services.ts';
import { SIZE_NAME } from './sizes.ts';
import { OTHER_SETTINGS } from './spool.ts';

/** Everything that the figures depend on. */
export interface Conditions {
  /** The measured commit, and whether files differ from it. */
  commit: string;
  date: string;
  cpu: string;
  cores: number;
  node: string;
  rounds: number;
  roundMs: number;
  size: string;
  /** Settings of API and worker that differ from the default. */
  otherSettings: Record<string, string>;
  /** Versions and settings of PostgreSQL and Redis, as the servers report them. */
  services: Record<string, string>;
}

export async function describeConditions(services: Services): Promise<Conditions> {
  return {
    commit: describeCommit(),
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    cpu: cpus()[0]?.model ?? 'unknown CPU',
    cores: availableParallelism(),
    node: process.version,
    rounds: ROUNDS,
    roundMs: ROUND_MS,
    size: SIZE_NAME,
    otherSettings: OTHER_SETTINGS,
    services: await services.describe(),
  };
}

/** The generated page itself does not count as a change. */
function describeCommit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: resolve(import.meta.dirname, '../..'), encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--', '.', ':!docs/benchmarks.md') !== '';
    return `${git('rev-parse', '--short=10', 'HEAD')}${changed ? ' + uncommitted changes' : ''}`;
  } catch {
    return 'unknown commit';
  }
}
