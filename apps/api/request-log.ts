import { LogController, type FastifyReply, type FastifyRequest } from 'fastify';

/** One line a request. Ids only: never the token, the URL's query or the text of a message. */
export class RequestLog extends LogController {
  override incomingRequest(): void {}

  /** Its line would hold the URL. */
  override routeNotFound(): void {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const { threadId, runId } = request.trail ?? {};
    const { url: route } = request.routeOptions;
    const { id: requestId, method } = request;
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    // An error here means that the caller was gone before the answer was.
    const message = error ? 'request abandoned' : 'request';
    request.log.info({ requestId, method, route, threadId, runId, status: reply.statusCode, ms }, message);
  }
}
