import type { Benchmark } from './bench.ts';

/**
 * All benchmarks by the names of the command line. Tests run each of them. A benchmark is loaded only when it runs, so that
 * listing the names is fast.
 */
export const BENCHMARKS: Record<string, Benchmark> = {
  append: async (bench) => (await import('./append.ts')).append(bench),
  'load-append': async (bench) => (await import('./load-append.ts')).loadAppend(bench),
  accept: async (bench) => (await import('./accept.ts')).accept(bench),
  'round-trip': async (bench) => (await import('./round-trip.ts')).roundTrip(bench),
  rebuild: async (bench) => (await import('./rebuild.ts')).rebuild(bench),
  'long-run': async (bench) => (await import('./long-run.ts')).longRun(bench),
  sockets: async (bench) => (await import('./sockets.ts')).sockets(bench),
  counts: async (bench) => (await import('./counts/counts.ts')).counts(bench),
  deltas: async (bench) => (await import('./deltas.ts')).deltas(bench),
  many: async (bench) => (await import('./many.ts')).many(bench),
  outage: async (bench) => (await import('./outage.ts')).outage(bench),
  scaling: async (bench) => (await import('./scaling.ts')).scaling(bench),
  latency: async (bench) => (await import('./latency.ts')).latency(bench),
  tenants: async () => (await import('./tenants.ts')).tenants(),
};

/** Benchmarks that run only if they are named. The night writes the results of the first two into docs/reliability.md. */
const ONLY_NAMED = ['latency', 'tenants', 'sockets', 'deltas', 'many', 'outage', 'scaling'];

/** The benchmarks whose results are in docs/benchmarks.md. */
export const ON_PAGE = Object.keys(BENCHMARKS).filter((name) => !ONLY_NAMED.includes(name));
