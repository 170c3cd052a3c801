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
import { streamLines } from './lines.ts';
import type { OpenAnswers } from './open-answers.ts';

/** The path of the admin API. */
export const ADMIN_PATH = '/admin/v1';

type AnyHandler = (input: unknown, context: AdminContext) => AsyncIterable<object> | Promise<object>;

/**
 * Installs one route per operation, behind an operator's token (request-checks.ts). Uses Fastify's routes, because a Nest
 * controller would need a method per operation that only calls the handler of the same name.
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
    // Built at the first request, so that it does not slow down the start.
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
    const answer = handle(request.input, { ...operatorOf(request), signal });
    void reply.code(status);
    if (form === 'json') return reply.send(await (answer as Promise<object>));
    if (form === 'bytes') {
      await this.sender.send(await (answer as Promise<FileRow>), request, reply);
      return reply;
    }
    const lines = await streamLines(answer as AsyncIterable<object>, {
      signal,
      errorLine: (error) => this.errorLine(request, error),
    });
    return reply.type('application/x-ndjson').header('X-Accel-Buffering', 'no').send(lines);
  }

  /** Returns the last line of an answer that fails after its first line was sent. */
  private errorLine(request: FastifyRequest, error: unknown): object {
    const refusal = asHttpError(error);
    if (refusal !== error && refusal.status >= 500) {
      this.logger.error({ requestId: request.id, err: error }, 'request failed');
    }
    return errorEnvelope(refusal);
  }
}

function asHttpError(error: unknown): HttpError {
  // `FileSender` throws the codes of the Agent Threads API.
  if (error instanceof ApiError && error.code === 'idempotency_conflict') {
    return new HttpError('conflict', error.status, error.message, error.headers);
  }
  if (!(error instanceof AdminRefused)) return toApiError(error);
  return new HttpError(error.code, ADMIN_ERRORS[error.code].status, error.message);
}

function operatorOf({ caller }: FastifyRequest): Pick<AdminContext, 'actor' | 'holder'> {
  if (caller?.kind !== 'operator') throw new Error('A request without an operator has passed the checks.');
  const { tokenId, tokenName, sessionHash } = caller;
  const holder = sessionHash === undefined ? { token: tokenId } : { session: sessionHash };
  return { actor: { kind: 'operator', id: tokenId, name: tokenName }, holder };
}
