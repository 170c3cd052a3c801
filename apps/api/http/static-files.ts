import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import type { Logger } from '#platform';
import { sendError } from './error-filter.ts';
import { notFound } from './http-errors.ts';

export interface StaticFiles {
  /** The path of the folder, with a slash at its end. */
  prefix: string;
  folder: string;
  /** The only files that are served; absent: all files of the folder. */
  names?: ReadonlySet<string>;
  /** Each name contains a hash of its content, so browsers may keep the files for a year. */
  isHashed?: boolean;
}

/** Serves the files of a folder. A file NAME with a NAME.br or NAME.gz beside it is sent compressed. */
export function serveFiles(fastify: FastifyInstance, logger: Logger, files: StaticFiles): void {
  const { prefix, folder, names, isHashed = false } = files;
  const headers = {
    'Cache-Control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    'X-Content-Type-Options': 'nosniff',
  };
  void fastify.register(async (scope) => {
    scope.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) =>
      // The plugin refuses `..` and other unusual paths with 403.
      sendError(logger, request, reply, error.statusCode === 403 ? notFound('path') : error),
    );
    await scope.register(fastifyStatic, {
      ...{ root: folder, prefix, index: false, decorateReply: false, suppressWarning: true },
      ...{ preCompressed: true, cacheControl: false },
      setHeaders: (reply) => void reply.headers(headers),
      ...(names && { allowedPath: (path: string) => names.has(path.slice(1)) }),
    });
  });
}
