import type { DynamicModule, LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { StartError, type Config, type Logger } from '#platform';
import { BASE_PATH } from './endpoint.ts';
import { createHttpAdapter } from './http-adapter.ts';

/** The application with its routes, not listening yet. */
export function createApi(module: DynamicModule, config: Config, logger: Logger): Promise<NestFastifyApplication> {
  return NestFactory.create<NestFastifyApplication>(module, createHttpAdapter(config, logger), {
    // Our own parser takes JSON only (request-checks.ts).
    bodyParser: false,
    abortOnError: false,
    logger: nestLogger(logger),
  });
}

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
    if (code === 'EACCES') throw new StartError(`Port ${PORT} of ${HOST} needs more rights; set PORT to another one.`);
    if (code === 'EADDRNOTAVAIL') throw new StartError(`HOST ${HOST} is no address of this machine.`);
    throw error;
  }
  const url = `${origin}${BASE_PATH}`;
  logger.info({ url }, 'api ready');
  return url;
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
