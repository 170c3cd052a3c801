interface Sizes {
  /** Events that `rebuild` reads: a multiple of 50. */
  rebuildEvents: number;
  /** `load-append`: events of the large Thread, and the number of small Threads. */
  largeThread: number;
  smallThreads: number;
  /** Runs of 99 steps that one round of `long-run` measures. */
  longRuns: number;
  /** `many`: the Threads of both databases. */
  manyThreads: number;
  fewThreads: number;
  /** `deltas`: Threads that stream at the same time, and the measured deltas of each. */
  streams: number;
  deltasOfStream: number;
  /** `outage`: its length, and the Runs that begin during it. */
  outageMs: number;
  outageRuns: number;
  /** `scaling`: the fleets in pairs of API and worker, and the length of a round. */
  fleets: number[];
  fleetMs: number;
  /** Operations of `counts`, by the number of clients. */
  counted: { clients: number; operations: number }[];
  /** How long `counts` measures the idle system, and how long it waits for PostgreSQL's statistics. */
  idleMs: number;
  settleMs: number;
}

const FULL: Sizes = {
  rebuildEvents: 1_000_000,
  largeThread: 100_000,
  smallThreads: 5_000,
  longRuns: 15,
  manyThreads: 1_000_000,
  fewThreads: 1_000,
  streams: 200,
  deltasOfStream: 200,
  outageMs: 300_000,
  outageRuns: 200,
  fleets: [1, 2, 4],
  fleetMs: 10_000,
  counted: [
    { clients: 1, operations: 200 },
    { clients: 32, operations: 1_000 },
  ],
  idleMs: 20_000,
  // An idle backend publishes within 10 s.
  settleMs: 11_000,
};

/** Sizes that only show that each benchmark runs. The figures mean nothing. */
const TINY: Sizes = {
  rebuildEvents: 1_000,
  largeThread: 1_000,
  smallThreads: 20,
  longRuns: 1,
  manyThreads: 200,
  fewThreads: 100,
  streams: 5,
  deltasOfStream: 5,
  outageMs: 3_000,
  outageRuns: 8,
  fleets: [1],
  fleetMs: 500,
  counted: [
    { clients: 1, operations: 10 },
    { clients: 32, operations: 64 },
  ],
  idleMs: 500,
  settleMs: 500,
};

export const SIZE_NAME = process.env['BENCH_SIZE'] ?? 'full';

/** The amount of data. `BENCH_SIZE=tiny` is for tests that only show that each benchmark runs. */
export const SIZES: Sizes = sizesOf(SIZE_NAME);

function sizesOf(name: string): Sizes {
  if (name === 'full') return FULL;
  if (name === 'tiny') return TINY;
  throw new Error(`BENCH_SIZE=${name} is unknown; use full or tiny`);
}
