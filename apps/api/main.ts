import { migrate } from '#event-store';
import {
  createLogger,
  endOnFault,
  loadConfig,
  logOutput,
  MetricsListener,
  requireChatKeys,
  requireDatabaseUrl,
  runMain,
  startTracing,
  throwStartupError,
  type ProcessLifecycle,
} from '#platform';
import { ApiModule } from './api.module.ts';
import { apiShutdownHooks, createApi, healthOf, listen } from './start-api.ts';

/** Starts a separate API process. Any number of processes share the work. */
async function main(lifecycle: ProcessLifecycle): Promise<void> {
  const config = loadConfig(process.env);
  const databaseUrl = requireDatabaseUrl(config);
  requireChatKeys(config);
  const logger = createLogger(config.LOG_LEVEL, 'spool api', logOutput(config.LOG_FORMAT));
  endOnFault(logger);
  lifecycle.endOnSignal(logger, config.SHUTDOWN_GRACE_MS);
  // Starts first and stops last, so that startup and shutdown can be observed.
  const listener = await lifecycle.start(() => MetricsListener.open(config, logger), { stop: (open) => open.close() });
  await lifecycle.start(() => startTracing(config, 'spool-api', logger), { stop: (tracing) => tracing.stop() });
  await migrate(databaseUrl).catch((error: unknown) => throwStartupError(error, databaseUrl));
  const start = () => createApi(ApiModule.forRoot(config, logger), config, logger);
  const app = await lifecycle.start(start, apiShutdownHooks(config, logger));
  listener.reportReadiness(() => healthOf(app).check());
  await lifecycle.start(() => listen(app, config, logger));
}

runMain(main);
