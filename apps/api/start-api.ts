import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamicModule, LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { StartError, type Config, type ShutdownHooks, type Logger } from '#platform';
import { StartPage, type NamedAgent } from './console/start-page.ts';
import { BASE_PATH } from './http/endpoint.ts';
import { HealthService } from './health-service.ts';
import { createHttpAdapter } from './http/http-adapter.ts';

/** Creates the application with its routes. It does not listen yet. */
export function createApi(module: DynamicModule, config: Config, logger: Logger): Promise<NestFastifyApplication> {
  return NestFactory.create<NestFastifyApplication>(module, createHttpAdapter(config, logger), {
    // The parser of request-checks.ts accepts only JSON.
    bodyParser: false,
    abortOnError: false,
    logger: nestLogger(logger),
  });
}

/** Returns the health service of the process. */
export const healthOf = (app: NestFastifyApplication): HealthService => app.get(HealthService);

export type { NamedAgent };

/** Names agents on the start page, which everyone can read. */
export function nameAgents(app: NestFastifyApplication, agents: readonly NamedAgent[]): void {
  app.get(StartPage).agents = agents;
}

/** Listens, and returns {base_url}. Throws StartError if the port is unavailable. */
export async function listen(app: NestFastifyApplication, { PORT, HOST }: Config, logger: Logger): Promise<string> {
  let origin: string;
  try {
    await app.init();
    // Does not listen through Nest, which also logs the error that it throws.
    origin = await app.getHttpAdapter().getInstance().listen({ port: PORT, host: HOST });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'EADDRINUSE') throw new StartError(`Port ${PORT} of ${HOST} is taken; set PORT to another one.`);
    if (code === 'EACCES')
      throw new StartError(`Port ${PORT} of ${HOST} needs more privileges; set PORT to another one.`);
    if (code === 'EADDRNOTAVAIL') throw new StartError(`HOST ${HOST} is not an address of this machine.`);
    throw error;
  }
  const url = `${origin}${BASE_PATH}`;
  logger.info({ url }, 'api ready');
  return url;
}

/**
 * Returns the shutdown steps of an API. First it still serves but reports that it is not ready, so that load balancers choose
 * other processes. Streams stay open meanwhile, because their clients would reconnect to this process. Then the port closes,
 * streams end and requests in progress finish. Connections that are open after the grace period are closed.
 */
export function apiShutdownHooks({ SHUTDOWN_DRAIN_MS }: Config, logger: Logger): ShutdownHooks<NestFastifyApplication> {
  return {
    drain: async (app) => {
      // The API never listened.
      if (!app.getHttpServer().listening) return;
      healthOf(app).stopping = true;
      if (SHUTDOWN_DRAIN_MS > 0) logger.info({ drainMs: SHUTDOWN_DRAIN_MS }, 'reported not ready');
      await sleep(SHUTDOWN_DRAIN_MS);
    },
    stop: (app) => app.close(),
    abandon: (app) => app.getHttpServer().closeAllConnections(),
  };
}

/** Logs the messages of Nest. Its plain messages report each module and route, so they get level debug. */
function nestLogger(logger: Logger): LoggerService {
  const detail = (more: unknown[]) => ({ nest: more.filter((part) => typeof part === 'string') });
  return {
    log: (message: unknown, ...more: unknown[]) => logger.debug(detail(more), String(message)),
    warn: (message: unknown, ...more: unknown[]) => logger.warn(detail(more), String(message)),
    error: (message: unknown, ...more: unknown[]) => logger.error(detail(more), String(message)),
  };
}
