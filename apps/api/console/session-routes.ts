import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { endSession, openSession, type Authenticator, type OperatorSession } from '#access';
import type { OperatorSessions, RateLimiter } from '#access';
import { audited, type Actor } from '#admin';
import type { Logger } from '#platform';
import type { Callers } from '../http/callers.ts';
import { sendError } from '../http/error-filter.ts';
import { ApiError, rateLimited } from '../http/http-errors.ts';
import { networkOf, RequestCount } from '../http/limit-rate.ts';
import { pageKeyOf, sessionCookie } from './session-cookie.ts';

const PATH = '/console/session';

/** How many wrong tokens one address may send in a minute. */
const WRONG_TRIES = 10;

const OLD_PAGE =
  'Spool-Page-Key: must be sent; the page of an older release does not send it, so reload it and sign in again';

const login = z.strictObject({ token: z.string().max(200) });

export interface SessionRoutesParts {
  pool: Pool;
  authenticator: Authenticator;
  sessions: OperatorSessions;
  callers: Callers;
  limiter: RateLimiter;
  logger: Logger;
}

/** Opens, describes and ends sessions of operators (docs/adr/0016). */
export class SessionRoutes {
  constructor(private readonly parts: SessionRoutesParts) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.parts.logger, request, reply, error);
    const common = { url: PATH, errorHandler, exposeHeadRoute: false, config: { isPrivate: true } };
    const onRequest = async (request: FastifyRequest): Promise<void> => this.parts.callers.requireOwnOrigin(request);
    fastify.route({ ...common, method: 'GET', handler: (request, reply) => this.read(request, reply) });
    fastify.route({
      ...common,
      method: 'POST',
      bodyLimit: 1_024,
      onRequest,
      handler: (request, reply) => this.open(request, reply),
    });
    fastify.route({ ...common, method: 'DELETE', onRequest, handler: (request, reply) => this.end(request, reply) });
  }

  private async read(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { callers, limiter } = this.parts;
    const count = new RequestCount(limiter, request, reply);
    const session = await callers.findSession(request, count);
    await count.add(session);
    // Not an error, because browsers log each one to the page's console.
    if (session === null) return reply.code(204).send();
    return reply.send(describe(session));
  }

  private async open(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { pool, authenticator, sessions, callers, limiter } = this.parts;
    const given = login.safeParse(request.body);
    if (!given.success) throw new ApiError('invalid_field', 'body.token: must be a token.');
    // An older page cannot keep the key. It would ask for the token again and again.
    if (pageKeyOf(request) === undefined) throw new ApiError('invalid_field', OLD_PAGE);
    // Counted before the check, so that parallel attempts cannot exceed the limit. A valid token is not counted.
    const key = `login ${networkOf(request.ip)}`;
    const { allowed, resetSeconds } = await limiter.consume(key, WRONG_TRIES);
    if (!allowed)
      throw refused(
        request,
        rateLimited(
          'too_many_sign_ins',
          'Too many invalid tokens from this address; wait for Retry-After.',
          resetSeconds,
        ),
      );
    const secret = given.data.token.trim();
    const caller = await authenticator.authenticate(`Bearer ${secret}`);
    if (caller?.kind !== 'operator') throw refused(request, wrongToken());
    await limiter.giveBack(key);
    const { tokenId, tokenName } = caller;
    const before = await callers.findSession(request);
    const secrets = await audited(pool, actorOf(caller), async (client, note) => {
      // The new cookie replaces the old one, so the old session could not be ended any more.
      if (before !== null && (await endSession(client, before.id))) {
        note({ action: 'session.closed', targetId: before.tokenId });
      }
      note({ action: 'session.opened', targetId: tokenId });
      return openSession(client, { tokenId, secret });
    });
    if (before !== null) sessions.forget(before.id);
    const { id, pageKey } = secrets;
    const session = await sessions.find({ ids: [id], pageKey });
    // The token was revoked meanwhile.
    if (session === null) throw refused(request, wrongToken());
    request.log.info({ requestId: request.id, tokenId, tokenName }, 'operator signed in');
    return reply
      .header('Set-Cookie', sessionCookie(id, callers.isHttps(request)))
      .send({ ...describe(session), pageKey });
  }

  private async end(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { pool, sessions, callers, limiter } = this.parts;
    const count = new RequestCount(limiter, request, reply);
    const session = await callers.findSession(request, count);
    await count.add(session);
    if (session !== null) {
      await audited(pool, actorOf(session), async (client, note) => {
        if (await endSession(client, session.id)) note({ action: 'session.closed', targetId: session.tokenId });
      });
      sessions.forget(session.id);
    }
    return reply
      .code(204)
      .header('Set-Cookie', sessionCookie(null, callers.isHttps(request)))
      .send();
  }
}

/** Returns the same error for every invalid token, so that an attacker learns nothing. */
const wrongToken = () => new ApiError('token_invalid', 'This is not a valid operator token.');

/** Logs the address of a refused attempt, never the token. */
function refused(request: FastifyRequest, error: ApiError): ApiError {
  const { code } = error;
  request.log.warn({ requestId: request.id, network: networkOf(request.ip), code }, 'sign-in refused');
  return error;
}

function actorOf({ tokenId, tokenName }: { tokenId: string; tokenName: string }): Actor {
  return { kind: 'operator', id: tokenId, name: tokenName };
}

function describe({ tokenId, tokenName, expiresAt }: OperatorSession): object {
  return { operator: { tokenId, name: tokenName }, expiresAt: expiresAt.toISOString() };
}
