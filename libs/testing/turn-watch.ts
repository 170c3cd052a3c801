const TURN_MS = 5;

/**
 * Records the turns of this process's event loop. A pause of the machine stops the loop. A check can therefore distinguish
 * a process that could not run from one that ran and failed.
 */
export class TurnWatch {
  /** When the last complete turn ended, by `performance.now()`. Timers that were due ran before it. */
  lastTurnAt = performance.now();
  private longestMs = 0;
  private readonly timer = setInterval(() => setImmediate(() => this.turn()), TURN_MS);

  /** The longest time between two turns so far. */
  get longestPauseMs(): number {
    return Math.max(this.longestMs, performance.now() - this.lastTurnAt);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private turn(): void {
    const now = performance.now();
    this.longestMs = Math.max(this.longestMs, now - this.lastTurnAt);
    this.lastTurnAt = now;
  }
}
