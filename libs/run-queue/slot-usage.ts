/** The slots that one organization uses at one moment. */
export interface SlotsInUse {
  organizationId: string;
  slots: number;
  /** The sum of the times since its Runs were claimed. */
  seconds: number;
}

/** The period over which slot-seconds count, milliseconds. */
const PERIOD_MS = 60_000;
/** After a longer pause between two samples, the use in between is unknown. */
const LONGEST_GAP_MS = 5_000;
/** Bounds of the estimated length of a Run, seconds. */
const SHORTEST_RUN_S = 0.1;
const LONGEST_RUN_S = 60;

/**
 * Estimates from samples the slot-seconds that each organization has used in the last minute. Each leader has its own: a new
 * leader starts empty, as if no organization had used anything.
 */
export class SlotUsage {
  private readonly samples: { at: number; used: ReadonlyMap<string, number> }[] = [];
  private readonly used = new Map<string, number>();
  private sampledAt = -Infinity;
  /** The time for which a Run holds its slot, seconds: twice the mean age of the Runs that hold one. */
  runSeconds = 1;

  /** Adds a sample at `now`, milliseconds of a monotonic clock. */
  add(now: number, inUse: readonly SlotsInUse[]): void {
    const gapMs = now - this.sampledAt;
    const seconds = gapMs > LONGEST_GAP_MS ? 0 : gapMs / 1_000;
    this.sampledAt = now;
    const used = new Map(inUse.map(({ organizationId, slots }) => [organizationId, slots * seconds]));
    for (const [id, more] of used) this.used.set(id, this.secondsOf(id) + more);
    this.samples.push({ at: now, used });
    this.forget(now);
    const slots = inUse.reduce((sum, one) => sum + one.slots, 0);
    const age = inUse.reduce((sum, one) => sum + one.seconds, 0);
    if (slots > 0) this.runSeconds = Math.min(LONGEST_RUN_S, Math.max(SHORTEST_RUN_S, (2 * age) / slots));
  }

  /** Returns the slot-seconds that the organization has used in the last minute. */
  secondsOf(organizationId: string): number {
    return this.used.get(organizationId) ?? 0;
  }

  private forget(now: number): void {
    while (this.samples.length > 0 && this.samples[0]!.at <= now - PERIOD_MS) {
      for (const [id, seconds] of this.samples.shift()!.used) {
        const left = this.secondsOf(id) - seconds;
        // Less than this is a rounding error.
        if (left > 1e-6) this.used.set(id, left);
        else this.used.delete(id);
      }
    }
  }
}
