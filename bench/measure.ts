import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Does one operation; answers its time in milliseconds where that is not all of it. Called by each client's loop, again
 * and again until the time is over.
 */
export type Operation = (client: number) => Promise<number | undefined>;

/** What one side did in one round. */
export interface Figures {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** One side of a comparison: works for about `forMs` milliseconds. */
export type Side = (forMs: number) => Promise<Figures>;

/** Of the ratio subject / floor. */
export type Target = { atLeast: number } | { atMost: number };

export interface Comparison {
  /** What is measured, as it stands in docs/benchmarks.md. */
  name: string;
  clients: number;
  /** Which figure is compared. */
  by: keyof Figures;
  /** The part of Spool under test. */
  subject: Side;
  /** The same work with nothing of Spool around it; null where a figure stands alone. */
  floor: Side | null;
  target?: Target;
}

export interface Result extends Pick<Comparison, 'name' | 'clients' | 'by'> {
  /** Medians over the rounds. */
  subject: Figures;
  floor: Figures | null;
  /** Median over the rounds of subject / floor. */
  ratio: number | null;
  /** (highest − lowest) / median of the ratios, or of the subject's figures where there is no floor. */
  spread: number;
  target: Target | null;
  verdict: Verdict;
}

export type Verdict = 'met' | 'missed' | 'no result' | 'no target';

/** A spread over this is no result. */
const MAX_SPREAD = 0.15;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
export const ROUND_MS = Number(process.env['BENCH_ROUND_MS'] ?? 3_000);

/**
 * Alternates the two sides, so that a machine that drifts drifts for both, and takes the median of the rounds' ratios:
 * absolute figures mean nothing on another machine.
 */
export async function compare({ name, clients, by, subject, floor, target }: Comparison): Promise<Result> {
  // A whole round each does not count: a process that has just started gets faster for seconds.
  await subject(ROUND_MS);
  await floor?.(ROUND_MS);
  const rounds: { subject: Figures; floor: Figures | null }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // The order changes each round: who comes second finds warmer caches, or the other's garbage.
    const floorFirst = round % 2 === 1 ? ((await floor?.(ROUND_MS)) ?? null) : null;
    const ours = await subject(ROUND_MS);
    rounds.push({ subject: ours, floor: floorFirst ?? (await floor?.(ROUND_MS)) ?? null });
  }
  const ratios = rounds.map((round) => round.subject[by] / (round.floor?.[by] ?? 1));
  const ratio = floor === null ? null : median(ratios);
  const spread = spreadOf(ratios);
  return {
    name,
    clients,
    by,
    subject: medians(rounds.map((round) => round.subject)),
    floor: floor && medians(rounds.map((round) => round.floor).filter((figures) => figures !== null)),
    ratio,
    spread,
    target: target ?? null,
    verdict: verdictOf(ratio, spread, target),
  };
}

export function verdictOf(ratio: number | null, spread: number, target: Target | undefined): Verdict {
  // Written so that a figure that is not a number is no result.
  if (!(spread <= MAX_SPREAD)) return 'no result';
  if (ratio === null || target === undefined) return 'no target';
  const met = 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost;
  return met ? 'met' : 'missed';
}

/** A side that calls the operation from so many loops at once. */
export function looped(operation: Operation, clients: number): Side {
  return async (forMs) => {
    const times: number[] = [];
    collectGarbage();
    const start = performance.now();
    const end = start + forMs;
    const loop = async (client: number): Promise<void> => {
      for (let before = performance.now(); before < end;) {
        const measured = await operation(client);
        const after = performance.now();
        times.push(measured ?? after - before);
        before = after;
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, client) => loop(client)));
    return figuresOf(times, performance.now() - start);
  };
}

/** So that no round pays for what was made before it. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

/** From the times of all operations of a round that took so long, milliseconds. */
export function figuresOf(timesMs: number[], tookMs: number): Figures {
  return {
    perSecond: timesMs.length / (tookMs / 1_000),
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
  };
}

export function spreadOf(values: number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values);
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/** Nearest rank; NaN of nothing. */
export function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN;
}

function medians(rounds: Figures[]): Figures {
  const of = (name: keyof Figures) => median(rounds.map((figures) => figures[name]));
  return { perSecond: of('perSecond'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms') };
}
