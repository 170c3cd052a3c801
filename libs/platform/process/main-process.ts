import type { Logger } from '../telemetry/logger.ts';

/** Something at start that is the operator's to mend; `message` is one readable line. */
export class StartError extends Error {
  override name = 'StartError';
}

/**
 * Runs a program. What it throws ends the process with code 1, a StartError in one line, a fault of ours with its stack,
 * after all that was started has ended. What fails because the process was told to stop is no news.
 */
export function runMain(main: (lifetime: Lifetime) => Promise<void>): void {
  const lifetime = new Lifetime();
  main(lifetime).catch((error: unknown) => {
    if (lifetime.isEnding) return;
    const text = error instanceof StartError ? error.message : String(error instanceof Error ? error.stack : error);
    const exit = (): void => process.exit(1);
    process.stderr.write(`${text}\n`, () => void lifetime.end().then(exit, exit));
  });
}

/**
 * What nobody caught leaves the process in a state that nobody knows: it ends with code 1. Its Runs come back when
 * their leases end.
 */
export function endOnFault(logger: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (error: unknown) => {
      logger.fatal({ err: error }, event);
      process.exit(1);
    });
  }
}

export interface Ending<T> {
  /** Comes first, while everything still works; the grace period is counted from its end. */
  drain?: (started: T) => Promise<void>;
  /** Ends in good order; without it the end only waits until the start is done. */
  stop?: (started: T) => Promise<void>;
  /** Called once when the grace period is over: cuts what still keeps `stop` waiting. */
  abandon?: (started: T) => void;
}

/** What a process has started, to be ended in good order: the last first. */
export class Lifetime {
  private readonly endings: (() => Promise<void>)[] = [];
  private graceMs = 0;
  private ending: Promise<void> | null = null;

  get isEnding(): boolean {
    return this.ending !== null;
  }

  /**
   * SIGTERM and SIGINT end the process in good order; a second one is heard but changes nothing. To be called before
   * anything is started: a signal that nobody hears leaves behind what lives on without this process.
   */
  endOnSignal(logger: Logger, graceMs: number): void {
    this.graceMs = graceMs;
    const onSignal = async (signal: string): Promise<void> => {
      if (this.isEnding) return;
      logger.info({ signal }, 'stopping');
      await this.end();
      logger.info('stopped');
      process.exit();
    };
    const onFailure = (error: unknown): void => {
      logger.fatal({ err: error }, 'shutdown failed');
      process.exit(1);
    };
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void onSignal(signal).catch(onFailure));
  }

  /**
   * Starts something that must not be left behind. Where the process is told to stop meanwhile, it is stopped as soon as
   * it has started, and the caller goes no further.
   */
  async start<T>(begin: () => Promise<T>, { drain, stop, abandon }: Ending<T> = {}): Promise<T> {
    if (this.isEnding) return new Promise(() => undefined);
    const starting = begin();
    this.endings.unshift(() =>
      starting.then(
        async (started) => {
          await drain?.(started);
          const cut = setTimeout(() => abandon?.(started), this.graceMs);
          try {
            await stop?.(started);
          } finally {
            clearTimeout(cut);
          }
        },
        () => undefined, // told to who began it
      ),
    );
    const started = await starting;
    return this.isEnding ? new Promise(() => undefined) : started;
  }

  /** Ends all, also when one of them fails to; then it rejects. */
  end(): Promise<void> {
    this.ending ??= this.endAll();
    return this.ending;
  }

  private async endAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const end of this.endings) await end().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'Some parts of the process could not be stopped.');
  }
}
