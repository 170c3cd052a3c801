import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AdminRefused, type AdminContext, type AdminHandlers } from '#admin';
import {
  ADMIN_ERRORS,
  adminOpenApiDocument,
  adminOperations,
  type AdminOperation,
  type AdminOperationName,
} from '#contract';
import type { FileRow } from '#files';
import type { Logger } from '#platform';
import { sendError } from '../http/error-filter.ts';
import type { FileSender } from '../files/download.ts';
import { ApiError, errorEnvelope, HttpError, toApiError } from '../http/http-errors.ts';
import { linesAsTheyCome } from './lines.ts';
import type { OpenAnswers } from './open-answers.ts';

/** Where the operations of operators are. */
export const ADMIN_PATH = '/admin/v1';

type AnyHandler = (input: unknown, context: AdminContext) => AsyncIterable<object> | Promise<object>;

/**
 * One route an operation, behind an operator's token (request-checks.ts). Of Fastify and not of Nest, whose controllers would
 * need a method each that does nothing but call the handler of the same name.
 */
export class AdminRoutes {
  constructor(
    private readonly handlers: AdminHandlers,
    private readonly open: OpenAnswers,
    private readonly sender: FileSender,
    private readonly logger: Logger,
  ) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.logger, request, reply, asHttpError(error));
    // Built at the first request, because it would slow each start down.
    let document: string | undefined;
    const common = { errorHandler, exposeHeadRoute: false };
    fastify.route({
      ...common,
      method: 'GET',
      url: `${ADMIN_PATH}/openapi.json`,
      handler: (_, reply) => {
        document ??= JSON.stringify(adminOpenApiDocument(ADMIN_PATH));
        return reply.type('application/json; charset=utf-8').send(document);
      },
    });
    for (const [name, operation] of Object.entries<AdminOperation>(adminOperations)) {
      const handle = this.handlers[name as AdminOperationName] as AnyHandler;
      fastify.route({
        ...common,
        method: operation.method,
        url: ADMIN_PATH + operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
        config: { adminOperation: operation, isPrivate: true },
        handler: (request, reply) => this.answer(operation, handle, request, reply),
      });
    }
  }

  private async answer(
    { form, status }: AdminOperation,
    handle: AnyHandler,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const signal = this.open.add(request, reply);
    const answer = handle(request.input, { actor: actorOf(request), signal });
    void reply.code(status);
    if (form === 'json') return reply.send(await (answer as Promise<object>));
    if (form === 'bytes') {
      await this.sender.send(await (answer as Promise<FileRow>), request, reply);
      return reply;
    }
    const lines = await linesAsTheyCome(answer as AsyncIterable<object>, {
      signal,
      lastWords: (error) => this.lastWords(request, error),
    });
    return reply.type('application/x-ndjson').header('X-Accel-Buffering', 'no').send(lines);
  }

  /** What fails when some lines are out already is the last line. */
  private lastWords(request: FastifyRequest, error: unknown): object {
    const refusal = asHttpError(error);
    if (refusal !== error && refusal.status >= 500) {
      this.logger.error({ requestId: request.id, err: error }, 'request failed');
    }
    return errorEnvelope(refusal);
  }
}

function asHttpError(error: unknown): HttpError {
  // `FileSender` speaks the codes of the Agent Threads API.
  if (error instanceof ApiError && error.code === 'idempotency_conflict') {
    return new HttpError('conflict', error.status, error.message, error.headers);
  }
  if (!(error instanceof AdminRefused)) return toApiError(error);
  return new HttpError(error.code, ADMIN_ERRORS[error.code].status, error.message);
}

function actorOf({ caller }: FastifyRequest): AdminContext['actor'] {
  if (caller?.kind !== 'operator') throw new Error('A request without an operator has passed the checks.');
  return { kind: 'operator', id: caller.tokenId, name: caller.tokenName };
}
