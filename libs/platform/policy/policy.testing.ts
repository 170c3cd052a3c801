import { PolicyWatch, type Instant } from './policy-watch.ts';

/** A watch whose looks, version and clocks the test controls. */
export class WatchUnderTest {
  version = '1';
  /** While set, looks fail with this error. */
  failure: Error | null = null;
  readonly errors: unknown[] = [];
  readonly clock: Instant = { monotonic: 1_000, wall: 1_700_000_000_000 };
  /** While set, a look waits for it before it returns the version. */
  delay: Promise<void> | null = null;
  readonly watch = new PolicyWatch({
    versions: {
      read: async () => {
        const { version, failure } = this;
        await this.delay;
        if (failure !== null) throw failure;
        return version;
      },
      close: async () => undefined,
    },
    onError: (error) => this.errors.push(error),
    now: () => ({ ...this.clock }),
  });

  pass(ms: number): void {
    this.clock.monotonic += ms;
    this.clock.wall += ms;
  }

  /** Changes the version and looks. */
  async change(): Promise<void> {
    this.version += '+';
    await this.watch.look();
  }
}
