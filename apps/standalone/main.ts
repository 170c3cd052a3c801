import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { migrate } from '#event-store';
import {
  createLogger,
  DATABASE,
  loadConfig,
  runMain,
  startEmbeddedPostgres,
  StartError,
  stopOnSignal,
  type Config,
  type Database,
  type Logger,
} from '#platform';
import { createApi, listen } from '../api/start-api.ts';
import { writePrivateFile } from './private-file.ts';
import { prepareQuickstart, type Quickstart } from './quickstart.ts';
import { StandaloneModule } from './standalone.module.ts';

/** API and worker in one process on an embedded PostgreSQL (design, section 9): what `npm start` runs. */
async function main(): Promise<void> {
  const settings = loadConfig(process.env);
  const logger = createLogger(settings.LOG_LEVEL, 'spool');
  await requireFreePort(settings);
  const dataDir = resolve(settings.DATA_DIR);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const database = await openOwnDatabase(settings, dataDir, logger);
  try {
    const config = { ...settings, DATABASE_URL: database.url };
    await migrate(config.DATABASE_URL);
    const app = await createApi(StandaloneModule.forRoot(config, logger), config, logger);
    const stop = async (): Promise<void> => {
      await app.close();
      await database.stop();
    };
    stopOnSignal(logger, config.SHUTDOWN_GRACE_MS, { stop, abandon: () => app.getHttpServer().closeAllConnections() });
    const baseUrl = await listen(app, config, logger);
    const { pool } = app.get<Database>(DATABASE);
    const quickstart = await prepareQuickstart(pool, dataDir, baseUrl);
    process.stdout.write(welcome(quickstart, join(settings.DATA_DIR, 'quickstart.env')));
  } catch (error) {
    await database.stop();
    throw error;
  }
}

interface OwnDatabase {
  url: string;
  stop(): Promise<void>;
}

/** The one that is set, or an embedded one, whose URL is left in the data directory for `npx spool`. */
async function openOwnDatabase({ DATABASE_URL }: Config, dataDir: string, logger: Logger): Promise<OwnDatabase> {
  if (DATABASE_URL !== undefined) return { url: DATABASE_URL, stop: () => Promise.resolve() };
  const log = (message: string): void => logger.info(message);
  const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, 'postgres'), log }).catch((error: unknown) => {
    throw new StartError(
      `The embedded PostgreSQL did not start: ${String(error instanceof Error ? error.message : error)}`,
    );
  });
  logger.info(
    { dataDir: postgres.dataDir, port: postgres.port, adopted: postgres.adopted },
    'embedded PostgreSQL ready',
  );
  const urlFile = join(dataDir, 'database.url');
  await writePrivateFile(urlFile, postgres.url);
  const stop = async (): Promise<void> => {
    await rm(urlFile, { force: true });
    await postgres.stop();
  };
  return { url: postgres.url, stop };
}

/** Before anything is started: a newcomer whose port is taken should be told at once, and by nothing else. */
async function requireFreePort({ PORT, HOST }: Config): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolvePromise, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new StartError(`Port ${PORT} of ${HOST} is taken; set PORT to another one, like PORT=3001 npm start`)
          : new StartError(`Cannot listen on port ${PORT} of ${HOST}: ${error.message}`),
      ),
    );
    probe.listen(PORT, HOST, () => probe.close(() => resolvePromise()));
  });
}

function welcome({ BASE_URL, ACCESS_TOKEN, AGENT_ID }: Quickstart, envFile: string): string {
  const input = { type: 'user.message', content: [{ type: 'text', text: 'Hello, Spool' }] };
  return `
Spool is ready at ${BASE_URL}

  curl -s ${BASE_URL}/agents/${AGENT_ID}/threads \\
    -H 'Authorization: Bearer ${ACCESS_TOKEN}' -H 'Content-Type: application/json' \\
    -d '${JSON.stringify({ userId: 'me', input })}'

Base URL, token and agent id are in ${envFile}. Ctrl-C stops; the data is kept.

`;
}

runMain(main);
