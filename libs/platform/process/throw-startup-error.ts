import { isDatabaseUnavailable } from '../postgres/database.ts';
import { databaseAddress } from '../postgres/database-address.ts';
import { StartError } from './main-process.ts';

/** Throws a StartError of one line for an error that operators can correct. Omits the URL, which contains a password. */
export function throwStartupError(error: unknown, url: string): never {
  const { code = '', message = '', syscall = '' } = error as { code?: string; message?: string; syscall?: string };
  const address = databaseAddress(url);
  const database = `The database ${address.database} at ${address.server || 'localhost'}`;
  if (syscall === 'open') {
    throw new StartError(`${database}: a file that its URL names cannot be read: ${message}.`, { cause: error });
  }
  if (UNTRUSTED.test(code)) {
    const cure = 'Check sslmode and sslrootcert in its URL.';
    throw new StartError(`${database} has an untrusted TLS certificate: ${message}. ${cure}`, {
      cause: error,
    });
  }
  if (isDatabaseUnavailable(error)) throw new StartError(`${database} does not answer.`, { cause: error });
  if (REFUSED.test(code) || REFUSED_BY_DRIVER.test(message)) {
    throw new StartError(`${database} refused the connection: ${message}.`, { cause: error });
  }
  if (code === UNDEFINED_TABLE) {
    throw new StartError(`${database} lacks tables: run spool migrate first (${message}).`, { cause: error });
  }
  throw error;
}

const UNDEFINED_TABLE = '42P01';
// Wrong name or password, unknown database, or no permission for the database or its Unix socket.
const REFUSED = /^(28...|3D000|42501|EACCES)$/;
// Node's codes for failed certificate verification; https://nodejs.org/docs/latest-v20.x/api/tls.html#x509-certificate-error-codes
const UNTRUSTED = /^(ERR_TLS_CERT_ALTNAME_INVALID|UNABLE_TO_|DEPTH_ZERO_SELF|SELF_SIGNED|CERT_|CRL_|HOSTNAME_MISMATCH)/;
// pg has no codes for these: the server asks for a password that is not set, or has no TLS.
const REFUSED_BY_DRIVER = /^(SASL: |The server does not support SSL)/;
