import { NestFactory } from '@nestjs/core';
import { migrate } from '#event-store';
import {
  createLogger,
  endOnFault,
  loadConfig,
  logOutput,
  MetricsListener,
  onScrape,
  requireDatabaseUrl,
  runMain,
  startTracing,
  throwStartupError,
  type ProcessLifecycle,
} from '#platform';
import { WorkerHealth } from './worker-health.ts';
import { WorkerModule } from './worker.module.ts';

/** Runs a worker process, which executes Runs and can lead the background loops. */
async function main(lifecycle: ProcessLifecycle): Promise<void> {
  const config = loadConfig(process.env);
  const databaseUrl = requireDatabaseUrl(config);
  const logger = createLogger(config.LOG_LEVEL, 'spool worker', logOutput(config.LOG_FORMAT));
  endOnFault(logger);
  lifecycle.endOnSignal(logger, config.SHUTDOWN_GRACE_MS);
  // Starts first and stops last, so that start and shutdown are observable.
  const listener = await lifecycle.start(() => MetricsListener.open(config, logger), { stop: (open) => open.close() });
  await lifecycle.start(() => startTracing(config, 'spool-worker', logger), { stop: (tracing) => tracing.stop() });
  await migrate(databaseUrl).catch((error: unknown) => throwStartupError(error, databaseUrl));
  const app = await lifecycle.start(
    // Nest logs each module; errors are thrown.
    () =>
      NestFactory.createApplicationContext(WorkerModule.forRoot(config, logger), {
        abortOnError: false,
        logger: false,
      }),
    { stop: (app) => app.close() },
  );
  const health = app.get(WorkerHealth);
  listener.reportReadiness(() => health.check());
  onScrape(async () => void (await health.check()));
  logger.info({ slots: config.WORKER_SLOTS, leaseMs: config.LEASE_MS }, 'worker ready');
}

runMain(main);
