import type { ReportedLatency } from '#testing';
import { median, quantile, spreadOf } from './measure.ts';

/** A latency over all rounds. Figures that were not measured are NaN. */
export interface LatencyResult {
  name: string;
  samples: number;
  /** The quantiles of all samples. */
  p50Ms: number;
  p99Ms: number;
  /** (highest − lowest) / median of the rounds' `tookMs`. */
  spread: number;
  /** The median of the rounds' bounds. Some bounds depend on a figure of the same round. */
  boundMs: number;
  /** "held" if every round held the bound; "no result" if a round did not report it. */
  verdict: 'held' | 'missed' | 'no result';
}

/**
 * Summarises the latencies of one promise. `rounds` has the reports of each round; a failed round has none. If no round has
 * reports, returns one result without figures.
 */
export function summariseLatencies(promise: string, rounds: ReportedLatency[][]): LatencyResult[] {
  const names = new Set(rounds.flat().map(({ what }) => what));
  if (names.size === 0) return [resultOf(promise, [], false)];
  return [...names].map((name) => {
    const reported = rounds.flat().filter(({ what }) => what === name);
    const isWhole = rounds.every((round) => round.some(({ what }) => what === name));
    return resultOf(`${promise}: ${name}`, reported, isWhole);
  });
}

function resultOf(name: string, reported: ReportedLatency[], isWhole: boolean): LatencyResult {
  const samples = reported.flatMap(({ samplesMs }) => samplesMs);
  const isHeld = reported.every(({ tookMs, boundMs }) => tookMs <= boundMs);
  return {
    name,
    samples: samples.length,
    p50Ms: quantile(samples, 0.5),
    p99Ms: quantile(samples, 0.99),
    spread: spreadOf(reported.map(({ tookMs }) => tookMs)),
    boundMs: median(reported.map(({ boundMs }) => boundMs)),
    verdict: isWhole ? (isHeld ? 'held' : 'missed') : 'no result',
  };
}
