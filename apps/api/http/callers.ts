import type { FastifyRequest } from 'fastify';
import type { Authenticator, Admission, Caller, OperatorSession, OperatorSessions } from '#access';
import { pageKeyOf, sessionIdsOf } from '../console/session-cookie.ts';
import { ApiError, tokenExpired, unauthenticated } from './http-errors.ts';

/** Finds the caller of a request: by `Authorization`, or by the session of a signed-in operator. */
export class Callers {
  private readonly publicUrl: URL | null;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly sessions: OperatorSessions,
    publicBaseUrl: string | undefined,
  ) {
    this.publicUrl = publicBaseUrl === undefined ? null : new URL(publicBaseUrl);
  }

  /** Returns null without a valid token or session. Throws what the database throws, and what `admission` throws. */
  async find(request: FastifyRequest, admission?: Admission): Promise<Caller | null> {
    if (!isByCookie(request)) return this.authenticator.authenticate(request.headers.authorization, admission);
    const session = await this.findSession(request, admission);
    if (session === null) return null;
    const { tokenId, tokenName, limits, hash } = session;
    return { kind: 'operator', tokenId, tokenName, limits, sessionHash: hash };
  }

  /** Returns the refusal of a request without a caller. */
  async refusalOf({ headers }: Pick<FastifyRequest, 'headers'>): Promise<ApiError> {
    return (await this.authenticator.hasExpired(headers.authorization)) ? tokenExpired() : unauthenticated();
  }

  /** Returns null without a valid session. Throws what the database throws, and what `admission` throws. */
  async findSession(request: FastifyRequest, admission?: Admission): Promise<OperatorSession | null> {
    const ids = sessionIdsOf(request, this.isHttps(request));
    return this.sessions.find({ ids, pageKey: pageKeyOf(request) ?? '' }, admission);
  }

  /**
   * Requires an `Origin` of this service. A browser adds the cookie to requests from any page of the same site, even from a
   * service on another port of this machine; `Origin` names that page. Throws ApiError.
   */
  requireOwnOrigin(request: FastifyRequest): void {
    const origin = originOf(request.headers.origin ?? '');
    if (origin !== null && (origin === this.publicUrl?.origin || origin === this.addressOf(request))) return;
    throw new ApiError(
      'foreign_origin',
      'Changes by a session need an Origin header that matches this service; check PUBLIC_BASE_URL.',
    );
  }

  /** Returns the origin that the request was sent to. The public host has the public scheme: a proxy need not forward it. */
  private addressOf({ protocol, host }: FastifyRequest): string | null {
    const isPublic = host.toLowerCase() === this.publicUrl?.host;
    return isPublic ? this.publicUrl.origin : originOf(`${protocol}://${host}`);
  }

  /** Returns whether the request or the public address has https. A proxy need not forward the scheme. */
  isHttps({ protocol }: FastifyRequest): boolean {
    return protocol === 'https' || this.publicUrl?.protocol === 'https:';
  }
}

/** Returns null for a malformed address, and for a scheme that has no origin. */
function originOf(address: string): string | null {
  const origin = URL.canParse(address) ? new URL(address).origin : 'null';
  return origin === 'null' ? null : origin;
}

/** Returns whether the cookie counts: in the admin API without a header, and never in the Agent Threads API. */
export function isByCookie({ headers, routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.adminOperation !== undefined && headers.authorization === undefined;
}
