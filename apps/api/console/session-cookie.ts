import type { FastifyRequest } from 'fastify';

const NAME = 'spool_session';

/** The session's id as the request gives it; null without one. */
export function sessionIdOf({ headers }: FastifyRequest): string | null {
  return /(?:^|;)\s*spool_session=([\w-]+)\s*(?:;|$)/.exec(headers.cookie ?? '')?.[1] ?? null;
}

/**
 * The value of `Set-Cookie`; null takes the cookie away. Out of reach of scripts, not sent with requests that come from other
 * sites, and gone with the browser: how long the session holds is decided here and not there.
 */
export function sessionCookie(id: string | null, isHttps: boolean): string {
  const end = id === null ? '; Max-Age=0' : '';
  const secure = isHttps ? '; Secure' : '';
  return `${NAME}=${id ?? ''}; Path=/; HttpOnly; SameSite=Strict${secure}${end}`;
}
