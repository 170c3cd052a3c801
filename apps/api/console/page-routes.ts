import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '#platform';
import { sendError } from '../http/error-filter.ts';
import { ApiError } from '../http/http-errors.ts';
import { serveFiles } from '../http/static-files.ts';
import { pageHeaders } from './page-policy.ts';

const PATH = '/console';
const CHAT_PATH = '/chat';
const NONCE = '__CSP_NONCE__';
const CHAT = '__CHAT_PAGE__';

/** The folder of the current build, or of the last build if the sources run. */
const above = join(import.meta.dirname, '..', '..', '..');
const DIST = basename(above) === 'dist' ? above : join(above, 'dist');

/** The folder where the build writes the page. */
export const CONSOLE_FOLDER = join(DIST, 'apps', 'console');

/** The page of the console and of the chat. Each of its views has a path below these two, so every such path returns the page. */
export class PageRoutes {
  private html: Promise<string> | null = null;

  constructor(
    private readonly folder: string,
    private readonly logger: Logger,
    private readonly hasChat = false,
  ) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.logger, request, reply, error);
    const handler = (_: FastifyRequest, reply: FastifyReply) => this.answer(reply);
    for (const path of [PATH, ...(this.hasChat ? [CHAT_PATH] : [])]) {
      for (const url of [path, `${path}/*`]) fastify.route({ method: ['GET', 'HEAD'], url, errorHandler, handler });
    }
    // A missing asset is 404: a browser would take the page for a script.
    serveFiles(fastify, this.logger, {
      ...{ prefix: `${PATH}/assets/`, folder: join(this.folder, 'assets'), isHashed: true },
    });
  }

  private async answer(reply: FastifyReply): Promise<FastifyReply> {
    this.html ??= readFile(join(this.folder, 'index.html'), 'utf8');
    const html = await this.html.catch((error: NodeJS.ErrnoException) => {
      this.html = null;
      if (error.code !== 'ENOENT') throw error;
      throw new ApiError('path_not_found', 'The console is not built: run `npm run build`.');
    });
    // The policy accepts only styles that carry the nonce, so each response has a new one.
    const nonce = randomBytes(16).toString('base64url');
    const headers = pageHeaders({ style: `'nonce-${nonce}'` });
    const page = html.replaceAll(NONCE, nonce).replace(CHAT, this.hasChat ? 'on' : 'off');
    return reply.headers(headers).type('text/html; charset=utf-8').send(page);
  }
}
