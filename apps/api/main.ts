import { migrate } from '#event-store';
import { createLogger, loadConfig, requireDatabaseUrl, runMain, throwReadable, type Lifetime } from '#platform';
import { ApiModule } from './api.module.ts';
import { createApi, listen } from './start-api.ts';

/** An API process of its own; any number of them share the work. */
async function main(lifetime: Lifetime): Promise<void> {
  const config = loadConfig(process.env);
  const databaseUrl = requireDatabaseUrl(config);
  const logger = createLogger(config.LOG_LEVEL, 'spool api');
  lifetime.endOnSignal(logger, config.SHUTDOWN_GRACE_MS);
  await migrate(databaseUrl).catch((error: unknown) => throwReadable(error, databaseUrl));
  const app = await lifetime.start(() => createApi(ApiModule.forRoot(config, logger), config, logger), {
    stop: (started) => started.close(),
    // Requests under way are finished, streams ended; what is open after the grace period is cut.
    abandon: (started) => started.getHttpServer().closeAllConnections(),
  });
  await lifetime.start(() => listen(app, config, logger));
}

runMain(main);
