import type { Logger } from './logger.ts';

/** Something at start that is the operator's to mend; `message` is one readable line. */
export class StartError extends Error {
  override name = 'StartError';
}

/** Runs a program. What it throws ends the process with code 1: a StartError in one line, a fault of ours with its stack. */
export function runMain(main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const text = error instanceof StartError ? error.message : String(error instanceof Error ? error.stack : error);
    process.stderr.write(`${text}\n`, () => process.exit(1));
  });
}

export interface Stoppable {
  /** Ends in good order; the process exits when it is done. */
  stop: () => Promise<void>;
  /** Called once when the grace period is over: cuts what still keeps `stop` waiting. */
  abandon?: () => void;
}

/** SIGTERM and SIGINT stop the program in good order; a second one is heard but changes nothing. */
export function stopOnSignal(logger: Logger, graceMs: number, { stop, abandon }: Stoppable): void {
  let stopping = false;
  const onSignal = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    logger.info({ signal }, 'stopping');
    if (abandon !== undefined) setTimeout(abandon, graceMs).unref();
    await stop();
    logger.info('stopped');
    process.exit();
  };
  const onFailure = (error: unknown): void => {
    logger.fatal({ err: error }, 'did not stop cleanly');
    process.exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void onSignal(signal).catch(onFailure));
}
