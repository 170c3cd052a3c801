import type { IncomingHttpHeaders } from 'node:http';
import Negotiator from 'negotiator';

/** The content codings of answers, the preferred one first. */
const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The types of `negotiator` lack its second argument. */
interface Encodings {
  encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
}

/** Returns the encoding that the client prefers (RFC 9110, section 12.5.3); null means identity. */
export function preferredEncoding(headers: IncomingHttpHeaders): Encoding | null {
  if (headers['accept-encoding'] === undefined) return null;
  const negotiator: Encodings = new Negotiator({ headers });
  const chosen = negotiator.encoding([...ENCODINGS, 'identity'], { preferred: ENCODINGS });
  return ENCODINGS.find((encoding) => encoding === chosen) ?? null;
}
