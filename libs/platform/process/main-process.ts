import type { Logger } from '../telemetry/logger.ts';

/** An error at start-up that the operator can correct. `message` is one readable line. */
export class StartError extends Error {
  override name = 'StartError';
}

/**
 * Runs a program. After an error, stops everything that was started and ends the process with code 1. Prints a StartError as one
 * line, and any other error with its stack. Ignores errors while the process is stopping.
 */
export function runMain(main: (lifecycle: ProcessLifecycle) => Promise<void>): void {
  const lifecycle = new ProcessLifecycle();
  main(lifecycle).catch((error: unknown) => {
    if (lifecycle.isEnding) return;
    const text = error instanceof StartError ? error.message : String(error instanceof Error ? error.stack : error);
    const exit = (): void => process.exit(1);
    process.stderr.write(`${text}\n`, () => void lifecycle.end().then(exit, exit));
  });
}

/**
 * Ends the process with code 1 after an uncaught error, because its state is then unknown. Its Runs are claimed again when their
 * leases end.
 */
export function endOnFault(logger: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (error: unknown) => {
      logger.fatal({ err: error }, event);
      process.exit(1);
    });
  }
}

export interface ShutdownHooks<T> {
  /** Called first, while everything still works. The grace period starts at its end. */
  drain?: (started: T) => Promise<void>;
  /** Stops gracefully. Without it, the shutdown only waits for the end of the start. */
  stop?: (started: T) => Promise<void>;
  /** Called once when the grace period is over, to cut everything that blocks `stop`. */
  abandon?: (started: T) => void;
}

/** Stops everything that a process has started, the last first. */
export class ProcessLifecycle {
  private readonly endings: (() => Promise<void>)[] = [];
  private graceMs = 0;
  private ending: Promise<void> | null = null;

  get isEnding(): boolean {
    return this.ending !== null;
  }

  /**
   * Stops the process gracefully on SIGTERM and SIGINT; a second signal has no effect. Call it before anything is started: an
   * unhandled signal would leave behind everything that outlives this process.
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
   * Starts something that must not be left behind. If the process is stopping meanwhile, stops it as soon as it has started. The
   * returned promise then never resolves, so the caller does not continue.
   */
  async start<T>(begin: () => Promise<T>, { drain, stop, abandon }: ShutdownHooks<T> = {}): Promise<T> {
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
        () => undefined, // reported to the caller of `start`
      ),
    );
    const started = await starting;
    return this.isEnding ? new Promise(() => undefined) : started;
  }

  /** Stops everything, even if one part fails to stop. Then rejects. */
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
