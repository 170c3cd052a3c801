/** Where the version of the policy is read: a number that every commit raises which changes who may do what. */
export interface PolicyVersions {
  /** Throws what the database throws, within two seconds and a half. */
  read(): Promise<string>;
  close(): Promise<void>;
}

/**
 * A moment by two clocks. The monotonic one stands still while the machine sleeps, the other one can be put back; the older
 * of their two answers is safe to go by.
 */
export interface Moment {
  monotonic: number;
  wall: number;
}

export interface PolicyWatchOptions {
  versions: PolicyVersions;
  /** The first of some looks in a row has failed. */
  onError?: (error: unknown) => void;
  now?: () => Moment;
}

/** From the beginning of a look to that of the next; milliseconds. */
const LOOK_MS = 1_000;
/**
 * How long a look is believed, from its beginning: long enough for one that fails to be made up for. With the second
 * until streams are asked about again it stays below the 5 s in which a revocation must be seen everywhere.
 */
export const TRUSTED_MS = 2_500;

/**
 * Knows whether what this process remembers of tokens and agents still holds: it looks once a second whether anything has
 * changed, and believes no look for long. One query a second, however many tokens and agents there are (docs/adr/0010).
 * Before it is started, and when it cannot look, nothing that is remembered holds.
 */
export class PolicyWatch {
  private readonly versions: PolicyVersions;
  private readonly onError: (error: unknown) => void;
  private readonly now: () => Moment;
  private readonly listeners = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private version: string | null = null;
  private changes = 0;
  private lookedAt: Moment | null = null;
  private isFailing = false;

  constructor({ versions, onError = () => undefined, now = momentNow }: PolicyWatchOptions) {
    this.versions = versions;
    this.onError = onError;
    this.now = now;
  }

  /**
   * What was read since this number is as it is holds, as long as `isTrusted`. Counted here, and not the version itself: a
   * database that was restored from a backup counts through the same versions again.
   */
  get generation(): number {
    return this.changes;
  }

  /** Whether the last look began a moment ago. */
  get isTrusted(): boolean {
    return this.lookedAt !== null && this.ageOf(this.lookedAt) < TRUSTED_MS;
  }

  moment(): Moment {
    return this.now();
  }

  /** Milliseconds since; endless where the clock was put back in between. */
  ageOf({ monotonic, wall }: Moment): number {
    const now = this.now();
    return now.wall < wall ? Infinity : Math.max(now.monotonic - monotonic, now.wall - wall);
  }

  /** Called after each change that is noticed; must not throw. */
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

  /** One look. Only one at a time: what an earlier one answers late must not pass for news. */
  async look(): Promise<void> {
    const beganAt = this.now();
    try {
      const version = await this.versions.read();
      this.isFailing = false;
      // The generation first: nothing remembered may be trusted by a look that says otherwise.
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

function momentNow(): Moment {
  return { monotonic: performance.now(), wall: Date.now() };
}
