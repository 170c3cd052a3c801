import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { ADMIN_HANDLERS, type AdminHandlers } from '#admin';
import type { AgentManifestInput } from '#agents';
import { migrate } from '#event-store';
import {
  createLogger,
  DATABASE,
  endOnFault,
  loadConfig,
  logOutput,
  MetricsListener,
  runMain,
  startEmbeddedPostgres,
  StartError,
  startTracing,
  throwStartupError,
  type Config,
  type Database,
  type EmbeddedPostgres,
  type ProcessLifecycle,
  type Logger,
} from '#platform';
import { migrateInstallation } from '#run-queue';
import { apiShutdownHooks, createApi, healthOf, listen, nameAgents } from '../api/start-api.ts';
import { assistantManifest, modelFromEnv, NoModel, providerAddresses, requireListedKey } from './assistant.ts';
import { chatLink } from './chat-link.ts';
import { exampleTools } from './examples.ts';
import { writePrivateFile } from './private-file.ts';
import { prepareQuickstart, quickstartFile, quickstartKeys, usableAgents, type Quickstart } from './quickstart.ts';
import { StandaloneModule } from './standalone.module.ts';

/** Runs API and worker in one process on an embedded PostgreSQL, for `npm start`. */
async function main(lifecycle: ProcessLifecycle): Promise<void> {
  const settings = loadConfig(process.env);
  const logger = createLogger(settings.LOG_LEVEL, 'spool', logOutput(settings.LOG_FORMAT));
  endOnFault(logger);
  await requireFreePort(settings);
  lifecycle.endOnSignal(logger, settings.SHUTDOWN_GRACE_MS);
  // Starts first and stops last, so that start and shutdown are observable.
  const listener = await lifecycle.start(() => MetricsListener.open(settings, logger), {
    stop: (open) => open.close(),
  });
  await lifecycle.start(() => startTracing(settings, 'spool', logger), { stop: (tracing) => tracing.stop() });
  const dataDir = resolve(settings.DATA_DIR);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const databaseUrl = settings.DATABASE_URL ?? (await startOwnDatabase(lifecycle, dataDir, settings, logger));
  // No other process counts requests in the embedded database, or starts the programs of its agents.
  const isAlone = settings.DATABASE_URL === undefined;
  const alone = isAlone ? { RATE_LIMIT_STORE: 'process' as const, ...exampleTools(process.env, dataDir) } : {};
  const allowed = [settings.ALLOWED_PRIVATE_ADDRESSES, ...providerAddresses(process.env)].filter(Boolean).join(',');
  const BROWSER_TOKEN_KEYS = settings.BROWSER_TOKEN_KEYS ?? (await quickstartKeys(dataDir));
  const own = {
    DATABASE_URL: databaseUrl,
    ALLOWED_PRIVATE_ADDRESSES: allowed,
    BROWSER_TOKEN_KEYS,
    CHAT_PAGE: 'on' as const,
  };
  const config = { ...settings, ...alone, ...own };
  await migrate(databaseUrl).catch((error: unknown) => throwStartupError(error, databaseUrl));
  const start = () => createApi(StandaloneModule.forRoot(config, logger), config, logger);
  const app = await lifecycle.start(start, apiShutdownHooks(config, logger));
  listener.reportReadiness(() => healthOf(app).check());
  const baseUrl = await lifecycle.start(() => listen(app, config, logger));
  const { pool } = app.get<Database>(DATABASE);
  const file = quickstartFile(settings.DATA_DIR, settings.DATABASE_URL);
  const handlers = app.get<AdminHandlers>(ADMIN_HANDLERS);
  const assistant = await assistantFromEnv(settings, logger);
  const quickstart = await prepareQuickstart({ pool, handlers }, { file, baseUrl, assistant });
  nameAgents(app, await usableAgents(pool, quickstart));
  process.stdout.write(welcome(quickstart, file, await chatLink(quickstart, logger), assistant?.model?.name));
}

/** Returns the assistant of the environment. Logs a wrong provider instead of failing, because the service works without it. */
async function assistantFromEnv(settings: Config, logger: Logger): Promise<AgentManifestInput | null> {
  try {
    const model = await modelFromEnv(process.env);
    if (model !== null) requireListedKey(model, settings.MANIFEST_VARIABLES);
    return model && (await assistantManifest(model));
  } catch (error) {
    if (!(error instanceof NoModel)) throw error;
    logger.warn(`assistant not published: ${error.message}`);
    return null;
  }
}

/** Starts and migrates the embedded PostgreSQL. Leaves the URL for processes in the data directory, for `npx spool`. */
async function startOwnDatabase(
  lifecycle: ProcessLifecycle,
  dataDir: string,
  { QUEUE_URL }: Config,
  logger: Logger,
): Promise<string> {
  const urlFile = join(dataDir, 'database.url');
  const log = (message: string): void => logger.info(message);
  const begin = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ dataDir: join(dataDir, 'postgres'), log }).catch((error: unknown) => {
      const why = String(error instanceof Error ? error.message : error);
      throw new StartError(`The embedded PostgreSQL did not start: ${why}`);
    });
  const postgres = await lifecycle.start(begin, { stop: (started) => started.stop() });
  logger.info(
    { dataDir: postgres.dataDir, port: postgres.port, adopted: postgres.adopted },
    'embedded PostgreSQL ready',
  );
  // Migrates as the owner. Nothing uses the owner's URL after this.
  const { ownerUrl, url } = postgres;
  await migrateInstallation({ ownerUrl, appUrl: url, queueUrl: QUEUE_URL }).catch((error: unknown) =>
    throwStartupError(error, ownerUrl),
  );
  const forget = (): Promise<void> => rm(urlFile, { force: true });
  await lifecycle.start(() => writePrivateFile(urlFile, postgres.url), { stop: forget });
  return postgres.socketUrl ?? postgres.url;
}

/** Throws StartError if the port is in use. Runs first, so that this is the only error a new user sees. */
async function requireFreePort({ PORT, HOST }: Config): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolvePromise, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new StartError(`Port ${PORT} of ${HOST} is taken; set PORT, and DATA_DIR too if another Spool runs there.`)
          : new StartError(`Cannot listen on port ${PORT} of ${HOST}: ${error.message}`),
      ),
    );
    probe.listen(PORT, HOST, () => probe.close(() => resolvePromise()));
  });
}

function welcome(quickstart: Quickstart, envFile: string, chat: string, modelName: string | undefined): string {
  const { BASE_URL, ACCESS_TOKEN, AGENT_ID, ASSISTANT_ID } = quickstart;
  const assistant = ASSISTANT_ID && `Assistant (${modelName}): agent ${ASSISTANT_ID}\n`;
  const folder = dirname(envFile);
  const forCommands = folder === '.data' ? '' : `For npx spool: export DATA_DIR=${folder}\n`;
  const input = { type: 'user.message', content: [{ type: 'text', text: 'Hello, Spool' }] };
  return `
Spool is ready at ${BASE_URL}

  curl -s ${BASE_URL}/agents/${AGENT_ID}/threads \\
    -H 'Authorization: Bearer ${ACCESS_TOKEN}' -H 'Content-Type: application/json' \\
    -d '${JSON.stringify({ userId: 'me', input })}'

Chat: ${chat}${chat.includes('#') ? ' (works for an hour)' : ''}
Start page: ${new URL('/', BASE_URL).href}
Console: ${new URL('/console', BASE_URL).href} (sign in with OPERATOR_TOKEN from ${envFile})
${forCommands}${assistant ?? ''}Base URL, token and agent id are in ${envFile}. Ctrl-C stops Spool and keeps the data.

`;
}

runMain(main);
