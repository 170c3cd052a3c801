/** The source of the policy version, a number that increases with every commit that changes permissions or agents. */
export interface PolicyVersions {
  /** Throws the error of the database, within 2.5 s. */
  read(): Promise<string>;
  close(): Promise<void>;
}

/**
 * A time on two clocks. The monotonic clock stops while the machine sleeps, and the wall clock can be set back. The larger of the
 * two ages is safe.
 */
export interface Instant {
  monotonic: number;
  wall: number;
}

export interface PolicyWatchOptions {
  versions: PolicyVersions;
  /** Called for the first of several consecutive failed looks. */
  onError?: (error: unknown) => void;
  now?: () => Instant;
}

/** The interval between the starts of two looks, milliseconds. */
const LOOK_MS = 1_000;
/**
 * How long a look is trusted, from its start: long enough for the next look to replace a failed one. Streams are checked again
 * within another second. The sum is below the 5 s within which a revocation must take effect everywhere.
 */
export const TRUSTED_MS = 2_500;

/**
 * Knows whether the tokens and agents that this process has cached are still valid. Looks for changes with one query a second,
 * however many tokens and agents there are (docs/adr/0010). Without a recent look, no cached value is valid.
 */
export class PolicyWatch {
  private readonly versions: PolicyVersions;
  private readonly onError: (error: unknown) => void;
  private readonly now: () => Instant;
  private readonly listeners = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private version: string | null = null;
  private changes = 0;
  private lookedAt: Instant | null = null;
  private isFailing = false;

  constructor({ versions, onError = () => undefined, now = instantNow }: PolicyWatchOptions) {
    this.versions = versions;
    this.onError = onError;
    this.now = now;
  }

  /**
   * The number of changes seen. A value read since its last increase is valid while `isTrusted`. This is not the version itself,
   * because a database restored from a backup repeats versions.
   */
  get generation(): number {
    return this.changes;
  }

  /** Whether the last successful look began less than `TRUSTED_MS` ago. */
  get isTrusted(): boolean {
    return this.lookedAt !== null && this.ageOf(this.lookedAt) < TRUSTED_MS;
  }

  moment(): Instant {
    return this.now();
  }

  /** Returns the milliseconds since then; infinite if the wall clock was set back meanwhile. */
  ageOf({ monotonic, wall }: Instant): number {
    const now = this.now();
    return now.wall < wall ? Infinity : Math.max(now.monotonic - monotonic, now.wall - wall);
  }

  /** Calls the listener after each detected change. It must not throw. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  start(): void {
    void this.lookOn();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.versions.close();
  }

  /** Looks once. Looks must not overlap, because a late response of an earlier one would count as a change. */
  async look(): Promise<void> {
    const beganAt = this.now();
    try {
      const version = await this.versions.read();
      this.isFailing = false;
      // Increases the generation first, so that no outdated value becomes trusted.
      const isNews = version !== this.version;
      if (isNews) this.changes++;
      this.version = version;
      this.lookedAt = beganAt;
      if (isNews) this.listeners.forEach((listener) => listener());
    } catch (error) {
      if (!this.isFailing && !this.isStopped) this.onError(error);
      this.isFailing = true;
    }
  }

  private async lookOn(): Promise<void> {
    const beganAt = performance.now();
    await this.look();
    if (this.isStopped) return;
    this.timer = setTimeout(() => void this.lookOn(), Math.max(0, LOOK_MS - (performance.now() - beganAt)));
    this.timer.unref();
  }
}

function instantNow(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}
