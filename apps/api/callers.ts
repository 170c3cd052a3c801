import type { FastifyRequest } from 'fastify';
import type { Authenticator, Caller, OperatorSession, OperatorSessions } from '#access';
import { sessionIdOf } from './console/session-cookie.ts';
import { ApiError } from './http-errors.ts';

/** Tells who sends a request: by `Authorization`, or, where operators sign in, by the cookie of their session. */
export class Callers {
  private readonly publicUrl: URL | null;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly sessions: OperatorSessions,
    publicBaseUrl: string | undefined,
  ) {
    this.publicUrl = publicBaseUrl === undefined ? null : new URL(publicBaseUrl);
  }

  /** Null where nobody valid does. Throws what the database throws. */
  async find(request: FastifyRequest): Promise<Caller | null> {
    if (!isByCookie(request)) return this.authenticator.authenticate(request.headers.authorization);
    const session = await this.findSession(request);
    if (session === null) return null;
    const { tokenId, tokenName, limits } = session;
    return { kind: 'operator', tokenId, tokenName, limits };
  }

  /** Null where nobody is signed in. Throws what the database throws. */
  async findSession(request: FastifyRequest): Promise<OperatorSession | null> {
    const id = sessionIdOf(request);
    return id === null ? null : this.sessions.find(id);
  }

  /**
   * A browser adds the cookie to what any page of the same site has it send, a service on another port of this machine
   * included, and says in `Origin` which page that was. Throws ApiError.
   */
  requireOwnOrigin(request: FastifyRequest): void {
    const { origin } = request.headers;
    const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).host : null;
    if (host !== null && (host === request.host.toLowerCase() || host === this.publicUrl?.host)) return;
    const told = 'With the cookie of a session, what changes something needs an Origin: header that names this service';
    throw new ApiError('foreign_origin', `${told}${origin === undefined ? '.' : ', and not another.'}`);
  }

  /** Whether the browser is on https, as far as the request or the public address tells: a proxy need not pass it on. */
  isHttps({ protocol }: FastifyRequest): boolean {
    return protocol === 'https' || this.publicUrl?.protocol === 'https:';
  }
}

/** The admin API takes the cookie where there is no header; the Agent Threads API never does. */
export function isByCookie({ headers, routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.adminOperation !== undefined && headers.authorization === undefined;
}
