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

/**
 * The floors of a subject.
 * `own`: Spool's own statements, recorded and sent by hand, or Spool's own work on little data.
 * `independent`: the same facts in plain tables, as an expert would write it by hand, without Spool's code.
 */
export interface Floors<T> {
  own?: T;
  independent?: T;
}

export type FloorName = keyof Floors<never>;
export const FLOOR_NAMES: FloorName[] = ['own', 'independent'];

export interface Comparison {
  /** The name of the measured work in the results. */
  name: string;
  clients: number;
  /** Which figure is compared. */
  by: keyof Figures;
  /** The part of Spool under test. */
  subject: Side;
  /** Empty when the figure stands alone. */
  floors: Floors<Side>;
  /** A bound on the ratio to the own floor. */
  target?: Target;
}

/** The figures of one floor. */
export interface FloorResult {
  /** Medians over the rounds. */
  figures: Figures;
  /** Median over the rounds of subject / floor. */
  ratio: number;
  /** (highest − lowest) / median of the ratios. */
  spread: number;
}

export interface Result extends Pick<Comparison, 'name' | 'clients' | 'by'> {
  /** Medians over the rounds. */
  subject: Figures;
  /** (highest − lowest) / median of the subject's own figures. */
  spread: number;
  floors: Floors<FloorResult>;
  target: Target | null;
  verdict: Verdict;
}

export type Verdict = 'met' | 'missed' | 'no result' | 'no target';

/** The largest spread of a valid result. */
const MAX_SPREAD = 0.15;
export const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
export const ROUND_MS = Number(process.env['BENCH_ROUND_MS'] ?? 3_000);

/**
 * Measures the sides in turn, so that changes of the machine's speed affect all of them. Takes the median of the rounds'
 * ratios. Absolute figures mean nothing on another machine.
 */
export async function compare({ name, clients, by, subject, floors, target }: Comparison): Promise<Result> {
  const present = FLOOR_NAMES.flatMap((floor) => (floors[floor] ? [{ floor, side: floors[floor] }] : []));
  const sides = [subject, ...present.map(({ side }) => side)];
  // Discards the first round of each side, because a new process gets faster for seconds.
  for (const side of sides) await side(ROUND_MS);
  const rounds: Figures[][] = sides.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    // Rotates the first side, because the second one finds warmer caches or the first one's garbage.
    for (let turn = 0; turn < sides.length; turn++) {
      const at = (round + turn) % sides.length;
      const figures = await sides[at]?.(ROUND_MS);
      if (figures !== undefined) rounds[at]?.push(figures);
    }
  }
  const [ours = [], ...theirs] = rounds;
  const results: Floors<FloorResult> = {};
  present.forEach(({ floor }, i) => (results[floor] = besideFloor(ours, theirs[i] ?? [], by)));
  const spread = spreadOf(ours.map((figures) => figures[by]));
  return {
    ...{ name, clients, by },
    subject: medians(ours),
    spread,
    floors: results,
    target: target ?? null,
    verdict: verdictOf(results.own?.ratio ?? null, results.own?.spread ?? spread, target),
  };
}

function besideFloor(ours: Figures[], theirs: Figures[], by: keyof Figures): FloorResult {
  const ratios = ours.map((figures, round) => figures[by] / (theirs[round]?.[by] ?? NaN));
  return { figures: medians(theirs), ratio: median(ratios), spread: spreadOf(ratios) };
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
    collectGarbage();
    const start = performance.now();
    return loop(operation, clients, start, () => performance.now() < start + forMs);
  };
}

/** Calls the operation `times` times in total, from one concurrent loop per client. */
export async function repeated(operation: Operation, clients: number, times: number): Promise<Figures> {
  let begun = 0;
  return loop(operation, clients, performance.now(), () => begun++ < times);
}

async function loop(operation: Operation, clients: number, start: number, goesOn: () => boolean): Promise<Figures> {
  const times: number[] = [];
  const work = async (client: number): Promise<void> => {
    for (let before = performance.now(); goesOn();) {
      const measured = await operation(client);
      const after = performance.now();
      times.push(measured ?? after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => work(i)));
  return figuresOf(times, performance.now() - start);
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
