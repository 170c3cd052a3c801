import { isIPv6 } from 'node:net';
import { parse } from 'pg-connection-string';

export interface DatabaseAddress {
  /** `host`, `host:port` or the folder of a Unix socket. Empty means localhost: the URL names none. */
  server: string;
  /** Empty means the database named after the user. */
  database: string;
}

/**
 * Returns server and database of a connection string, without user and password. Parses it as `pg` does. The host of a Unix
 * socket may be percent-encoded (`postgres://me@%2Fvar%2Frun%2Fpostgresql/spool`) or a parameter
 * (`postgres://me@/spool?host=/var/run/postgresql`).
 *
 * @throws TypeError or URIError for a text that `pg` cannot parse
 */
export function databaseAddress(text: string): DatabaseAddress {
  const { host, port, database } = parse(withoutTls(text));
  const name = host ?? '';
  const server = isIPv6(name) ? `[${name}]` : name;
  return { server: port ? `${server}:${port}` : server, database: database ?? '' };
}

/** Returns user and password of a connection string, or null for each that is missing. Throws as `databaseAddress` does. */
export function databaseUser(text: string): { name: string | null; password: string | null } {
  const { user, password } = parse(withoutTls(text));
  return { name: user || null, password: password || null };
}

/** Returns whether `pg` can parse the text. */
export function isDatabaseUrl(text: string): boolean {
  try {
    databaseAddress(text);
    return true;
  } catch {
    return false;
  }
}

/** Removes the parameters of TLS, because `parse` reads the certificate files that they name. */
const withoutTls = (text: string): string => text.replaceAll(/(?<=[?&])ssl\w*=[^&#]*/g, '');
