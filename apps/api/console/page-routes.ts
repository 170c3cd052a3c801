import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '#platform';
import { sendError } from '../http/error-filter.ts';
import { ApiError } from '../http/http-errors.ts';
import { pageHeaders } from './page-policy.ts';
import { StaticFolder } from './static-folder.ts';

const PATH = '/console';
const PAGE = 'index.html';
const NONCE = '__CSP_NONCE__';

/** Of the build, or, where the sources run, of the last one. */
const above = join(import.meta.dirname, '..', '..', '..');
const DIST = basename(above) === 'dist' ? above : join(above, 'dist');

/** Where the build leaves the page. */
export const CONSOLE_FOLDER = join(DIST, 'apps', 'console');

/** The operators' page: its files, and itself at every other path below, for which it has a view. */
export class PageRoutes {
  private readonly files: StaticFolder;

  constructor(
    folder: string,
    private readonly logger: Logger,
  ) {
    this.files = new StaticFolder(folder, (name) => name.startsWith('assets/'));
  }

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.logger, request, reply, error);
    for (const url of [PATH, `${PATH}/*`]) {
      fastify.route({
        method: ['GET', 'HEAD'],
        url,
        errorHandler,
        handler: (request, reply) => this.answer(request, reply),
      });
    }
  }

  private async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const name = (request.params as { '*'?: string })['*'] ?? '';
    if (name !== PAGE && (await this.files.send(name, request, reply))) return reply;
    // Not the page in the place of a file of another build: it would be taken for a script.
    if (name.startsWith('assets/')) throw new ApiError('path_not_found', 'There is no such file.');
    if (!(await this.files.has(PAGE)))
      throw new ApiError('path_not_found', 'The console is not built: run `npm run build`.');
    const { bytes, type } = await this.files.read(PAGE);
    // Another one in each answer: only style that carries it is taken.
    const nonce = randomBytes(16).toString('base64url');
    const headers = pageHeaders({ style: `'nonce-${nonce}'` });
    return reply.headers(headers).type(type).send(bytes.toString().replaceAll(NONCE, nonce));
  }
}
