import { execFile } from 'node:child_process';
import { chmod, chown } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Paths of PEM files. */
export interface TestCertificates {
  /** The authority that signed the server's certificate. */
  authority: string;
  /** An authority of the same name that signed nothing. */
  otherAuthority: string;
  certificate: string;
  key: string;
}

export interface TestCertificateOptions {
  /** The subject of the server's certificate, such as `DNS:localhost` or `IP:127.0.0.1`. */
  subject: string;
  /** Owns the server's files. Default: the user of this process. */
  owner?: { uid: number; gid: number };
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];

/** Creates an authority and a server certificate in the folder with openssl. */
export async function makeTestCertificates(
  folder: string,
  { subject, owner }: TestCertificateOptions,
): Promise<TestCertificates> {
  const file = (name: string): string => join(folder, name);
  const request = (name: string, ...args: string[]) =>
    run('openssl', ['req', '-x509', ...NEW_KEY, '-keyout', file(`${name}.key`), '-out', file(`${name}.pem`), ...args]);
  for (const name of ['authority', 'other']) await request(name, '-subj', '/CN=Spool test authority');
  const signer = ['-CA', file('authority.pem'), '-CAkey', file('authority.key')];
  const constraints = ['-addext', `subjectAltName=${subject}`, '-addext', 'basicConstraints=critical,CA:FALSE'];
  await request('server', '-subj', '/CN=Spool test server', ...signer, ...constraints);
  for (const name of ['server.key', 'server.pem']) {
    await chmod(file(name), 0o600);
    if (owner !== undefined) await chown(file(name), owner.uid, owner.gid);
  }
  return {
    authority: file('authority.pem'),
    otherAuthority: file('other.pem'),
    certificate: file('server.pem'),
    key: file('server.key'),
  };
}
