import { migrate } from '#event-store';
import { createLogger, loadConfig, requireDatabaseUrl, runMain, stopOnSignal } from '#platform';
import { ApiModule } from './api.module.ts';
import { createApi, listen } from './start-api.ts';

/** An API process of its own; any number of them share the work. */
async function main(): Promise<void> {
  const config = loadConfig(process.env);
  const logger = createLogger(config.LOG_LEVEL, 'spool api');
  await migrate(requireDatabaseUrl(config));
  const app = await createApi(ApiModule.forRoot(config, logger), config, logger);
  // Requests under way are finished, streams ended; what is open after the grace period is cut.
  const abandon = (): void => app.getHttpServer().closeAllConnections();
  stopOnSignal(logger, config.SHUTDOWN_GRACE_MS, { stop: () => app.close(), abandon });
  await listen(app, config, logger);
}

runMain(main);
