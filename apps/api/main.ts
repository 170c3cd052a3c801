import { migrate } from '#event-store';
import {
  createLogger,
  endOnFault,
  loadConfig,
  logOutput,
  MetricsListener,
  requireDatabaseUrl,
  runMain,
  startTracing,
  throwReadable,
  type Lifetime,
} from '#platform';
import { ApiModule } from './api.module.ts';
import { apiEnding, createApi, healthOf, listen } from './start-api.ts';

/** Starts a separate API process. Any number of processes share the work. */
async function main(lifetime: Lifetime): Promise<void> {
  const config = loadConfig(process.env);
  const databaseUrl = requireDatabaseUrl(config);
  const logger = createLogger(config.LOG_LEVEL, 'spool api', logOutput(config.LOG_FORMAT));
  endOnFault(logger);
  lifetime.endOnSignal(logger, config.SHUTDOWN_GRACE_MS);
  // Starts first and stops last, so that startup and shutdown can be observed.
  const listener = await lifetime.start(() => MetricsListener.open(config, logger), { stop: (open) => open.close() });
  await lifetime.start(() => startTracing(config, 'spool-api', logger), { stop: (tracing) => tracing.stop() });
  await migrate(databaseUrl).catch((error: unknown) => throwReadable(error, databaseUrl));
  const start = () => createApi(ApiModule.forRoot(config, logger), config, logger);
  const app = await lifetime.start(start, apiEnding(config, logger));
  listener.tellReadiness(() => healthOf(app).check());
  await lifetime.start(() => listen(app, config, logger));
}

runMain(main);
