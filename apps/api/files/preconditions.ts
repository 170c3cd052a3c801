import type { FastifyRequest } from 'fastify';
import type { FileRow } from '#files';
import { preconditionFailed } from '../http/http-errors.ts';

/** Returns a strong validator: files with the same tag have the same bytes. */
export const etagOf = ({ sha256 }: Pick<FileRow, 'sha256'>): string => `"${sha256}"`;

/**
 * Evaluates `If-Match` and then `If-None-Match` (RFC 9110, section 13.2.2). Files have no Last-Modified, so the
 * conditions on dates do not apply. Returns whether a read gets 304. Throws ApiError 412.
 */
export function isNotModified({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>, etag: string): boolean {
  const { 'if-match': wanted, 'if-none-match': known } = headers;
  // Strong comparison: a weak tag matches nothing.
  if (wanted !== undefined && !lists(wanted, etag)) throw preconditionFailed('If-Match', etag);
  if (known === undefined || !lists(known.replaceAll(/W\/(?=")/g, ''), etag)) return false;
  if (method === 'GET' || method === 'HEAD') return true;
  throw preconditionFailed('If-None-Match', etag);
}

/** Returns whether the request depends on the current bytes. */
export const isConditional = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean =>
  headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;

/** Returns whether the header lists the tag. Spool's tags contain no commas. */
function lists(header: string, etag: string): boolean {
  const tags = header.split(',').map((tag) => tag.trim());
  return tags.includes('*') || tags.includes(etag);
}
