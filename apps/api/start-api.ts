import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamicModule, LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { StartError, type Config, type Ending, type Logger } from '#platform';
import { BASE_PATH } from './http/endpoint.ts';
import { HealthService } from './health-service.ts';
import { createHttpAdapter } from './http/http-adapter.ts';

/** The application with its routes, not listening yet. */
export function createApi(module: DynamicModule, config: Config, logger: Logger): Promise<NestFastifyApplication> {
  return NestFactory.create<NestFastifyApplication>(module, createHttpAdapter(config, logger), {
    // Our own parser takes JSON only (request-checks.ts).
    bodyParser: false,
    abortOnError: false,
    logger: nestLogger(logger),
  });
}

/** What the process says of itself. */
export const healthOf = (app: NestFastifyApplication): HealthService => app.get(HealthService);

/** Listens, and answers {base_url}. Throws StartError where the port cannot be had. */
export async function listen(app: NestFastifyApplication, { PORT, HOST }: Config, logger: Logger): Promise<string> {
  let origin: string;
  try {
    await app.init();
    // Not by Nest, which logs what it throws as well.
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
 * How an API ends. First it serves on and says that it is not ready, so that balancers send elsewhere; streams stay open so
 * long, for a client that came back at once would be sent here again. Then the port closes, streams end and requests under
 * way are finished; what is open after the grace period is cut.
 */
export function apiEnding({ SHUTDOWN_DRAIN_MS }: Config, logger: Logger): Ending<NestFastifyApplication> {
  return {
    drain: async (app) => {
      // It never served.
      if (!app.getHttpServer().listening) return;
      healthOf(app).stopping = true;
      if (SHUTDOWN_DRAIN_MS > 0) logger.info({ drainMs: SHUTDOWN_DRAIN_MS }, 'reported not ready');
      await sleep(SHUTDOWN_DRAIN_MS);
    },
    stop: (app) => app.close(),
    abandon: (app) => app.getHttpServer().closeAllConnections(),
  };
}

/** Nest tells of each module and route: only what is wrong is news. */
function nestLogger(logger: Logger): LoggerService {
  const detail = (more: unknown[]) => ({ nest: more.filter((part) => typeof part === 'string') });
  return {
    log: (message: unknown, ...more: unknown[]) => logger.debug(detail(more), String(message)),
    warn: (message: unknown, ...more: unknown[]) => logger.warn(detail(more), String(message)),
    error: (message: unknown, ...more: unknown[]) => logger.error(detail(more), String(message)),
  };
}
