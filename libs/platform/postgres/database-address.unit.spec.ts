import pg from 'pg';
import { databaseAddress, isDatabaseUrl } from './database-address.ts';

test.each([
  ['postgres://me:secret@host:5433/spool', 'host:5433', 'spool'],
  ['postgresql://me@host/spool?sslmode=verify-full', 'host', 'spool'],
  ['postgres://me@[::1]:5433/a%20b', '[::1]:5433', 'a b'],
  ['postgres://me:secret@%2Fvar%2Frun%2Fpostgresql/spool', '/var/run/postgresql', 'spool'],
  ['postgres://me:secret@/spool?host=/var/run/postgresql&port=5433', '/var/run/postgresql:5433', 'spool'],
  ['postgres:///spool?host=/var/run/postgresql', '/var/run/postgresql', 'spool'],
  ['postgres:///spool', '', 'spool'],
  ['postgres://me@host', 'host', ''],
  ['postgres://me@host/sp%zz', 'host', 'sp%zz'],
  ['postgres://me@host/a%2Fb', 'host', 'a%2Fb'],
])('databaseAddress of %s is the server "%s" and the database "%s"', (url, server, database) => {
  expect(isDatabaseUrl(url)).toBe(true);
  expect(databaseAddress(url)).toEqual({ server, database });
  if (database !== '') expect(new pg.Client({ connectionString: url }).database).toBe(database);
});

test('databaseAddress reads no certificate file', () => {
  const url = 'postgres://me@host/spool?sslmode=verify-full&sslrootcert=/no/such.pem&port=5433';
  expect(databaseAddress(url)).toEqual({ server: 'host:5433', database: 'spool' });
});

test.each([
  'postgres://me:p#w@host/spool',
  'postgres://host:port/spool',
  'postgres://me@?host=/run',
  'postgres://me@host/sp%ff',
])('rejects %s as a database URL, like pg', (url) => {
  expect(() => new pg.Client({ connectionString: url })).toThrow();
  expect(isDatabaseUrl(url)).toBe(false);
});
