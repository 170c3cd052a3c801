import { isDatabaseAway } from './database.ts';
import { StartError } from './main-process.ts';

/** What an operator can do something about is said in one line, and without the URL, which has a password in it. */
export function throwReadable(error: unknown, url: string): never {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  const { host, pathname } = new URL(url);
  const database = `The database ${pathname.slice(1)} at ${host}`;
  if (isDatabaseAway(error)) throw new StartError(`${database} does not answer.`, { cause: error });
  if (REFUSED.test(code) || REFUSED_BY_DRIVER.test(message)) {
    throw new StartError(`${database} refuses: ${message}.`, { cause: error });
  }
  if (code === UNDEFINED_TABLE) {
    throw new StartError(`${database} lacks tables: run spool migrate first (${message}).`, { cause: error });
  }
  throw error;
}

const UNDEFINED_TABLE = '42P01';
// Wrong name or password, no such database, no right to it.
const REFUSED = /^(28...|3D000|42501)$/;
// pg has no codes for these: no password is set and one is asked for; the server has no TLS.
const REFUSED_BY_DRIVER = /^(SASL: |The server does not support SSL)/;
