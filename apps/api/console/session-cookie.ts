import type { FastifyRequest } from 'fastify';

const NAME = 'spool_session';
/** Browsers accept a cookie with this prefix only over https and for one host, so no sibling domain can set it. */
const HTTPS_NAME = `__Host-${NAME}`;

const nameOf = (isHttps: boolean): string => (isHttps ? HTTPS_NAME : NAME);

/** Returns the session ids of the request's cookies in order. On http, sibling domains can set some of them. */
export function sessionIdsOf({ headers }: FastifyRequest, isHttps: boolean): string[] {
  const start = `${nameOf(isHttps)}=`;
  return (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start))
    .map((pair) => pair.slice(start.length));
}

/** Returns whether the request has a cookie of a session, valid or not. */
export function hasSessionCookie({ headers }: FastifyRequest): boolean {
  return (headers.cookie ?? '').includes(`${NAME}=`);
}

/**
 * Returns the value of `Set-Cookie`; null removes the cookie. Scripts and requests of other sites cannot use it. It has no expiry,
 * because the server decides how long the session lasts.
 */
export function sessionCookie(id: string | null, isHttps: boolean): string {
  const end = id === null ? '; Max-Age=0' : '';
  const secure = isHttps ? '; Secure' : '';
  return `${nameOf(isHttps)}=${id ?? ''}; Path=/; HttpOnly; SameSite=Strict${secure}${end}`;
}

/** Returns the page key of the request. It is empty if the page has none, and undefined for a page of an older release. */
export function pageKeyOf({ headers }: FastifyRequest): string | undefined {
  return headers['spool-page-key'] as string | undefined;
}
