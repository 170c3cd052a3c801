import type { ReportedLatency } from '#testing';
import { median, quantile, spreadOf } from './measure.ts';

/** A latency over all rounds. Figures that were not measured are NaN. */
export interface LatencyResult {
  name: string;
  samples: number;
  /** Of all samples. */
  p50Ms: number;
  p99Ms: number;
  /** (highest − lowest) / median of the rounds' bounded figure. */
  spread: number;
  /** The median of the rounds, because some bounds depend on a figure of the same round. */
  boundMs: number;
  /** Held if it was held in every round. */
  verdict: 'held' | 'missed' | 'no result';
}

/**
 * Summarises the latencies of one promise. Each element is what one round reported: nothing, if the round failed.
 * A promise of which no round reported anything is one result without figures.
 */
export function summariseLatencies(promise: string, rounds: ReportedLatency[][]): LatencyResult[] {
  const names = new Set(rounds.flat().map(({ what }) => what));
  if (names.size === 0) return [resultOf(promise, [], rounds.length)];
  return [...names].map((name) => {
    const reported = rounds.flat().filter(({ what }) => what === name);
    return resultOf(`${promise}: ${name}`, reported, rounds.length);
  });
}

function resultOf(name: string, reported: ReportedLatency[], rounds: number): LatencyResult {
  const samples = reported.flatMap(({ samplesMs }) => samplesMs);
  const isHeld = reported.every(({ tookMs, boundMs }) => tookMs <= boundMs);
  return {
    name,
    samples: samples.length,
    p50Ms: quantile(samples, 0.5),
    p99Ms: quantile(samples, 0.99),
    spread: spreadOf(reported.map(({ tookMs }) => tookMs)),
    boundMs: median(reported.map(({ boundMs }) => boundMs)),
    verdict: reported.length < rounds ? 'no result' : isHeld ? 'held' : 'missed',
  };
}
