import { PolicyWatch, type Moment } from './policy-watch.ts';

/** A watch that looks when told to, at a version that is set, by clocks that move when told to. */
export class WatchUnderTest {
  version = '1';
  /** Looks fail with it while it is set. */
  failure: Error | null = null;
  readonly errors: unknown[] = [];
  readonly clock: Moment = { monotonic: 1_000, wall: 1_700_000_000_000 };
  /** Set: a look waits for it between reading and answering. */
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

  /** Somebody changes something, and it is noticed. */
  async change(): Promise<void> {
    this.version += '+';
    await this.watch.look();
  }
}
