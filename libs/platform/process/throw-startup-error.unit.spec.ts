import { StartError } from './main-process.ts';
import { throwStartupError } from './throw-startup-error.ts';

const read = (error: unknown) => () => throwStartupError(error, 'postgres://me:geheim@host:5432/spool');
const coded = (code: string) => Object.assign(new Error('said'), { code });

test.each([
  ['an unavailable database', coded('ECONNREFUSED'), 'The database spool at host:5432 does not answer.'],
  ['a wrong password', coded('28P01'), 'The database spool at host:5432 refused the connection: said.'],
  ['an unknown database', coded('3D000'), 'The database spool at host:5432 refused the connection: said.'],
  ['a missing password', new Error('SASL: x'), 'The database spool at host:5432 refused the connection: SASL: x.'],
  [
    'an untrusted certificate',
    coded('SELF_SIGNED_CERT_IN_CHAIN'),
    'The database spool at host:5432 has an untrusted TLS certificate: said. Check sslmode and sslrootcert in its URL.',
  ],
  [
    'a missing certificate file',
    Object.assign(coded('ENOENT'), { syscall: 'open' }),
    'The database spool at host:5432: a file that its URL names cannot be read: said.',
  ],
  ['a Unix socket of another user', coded('EACCES'), 'The database spool at host:5432 refused the connection: said.'],
  ['missing tables', coded('42P01'), 'The database spool at host:5432 lacks tables: run spool migrate first (said).'],
])('reports %s in one line', (_, error, line) => {
  expect(read(error)).toThrow(StartError);
  expect(read(error)).toThrow(line);
});

test('throws any other error unchanged', () => {
  const fault = new TypeError('x is undefined');
  expect(read(fault)).toThrow(fault);
});
