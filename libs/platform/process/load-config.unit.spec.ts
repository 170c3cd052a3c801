import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSigningKeys } from './config-lists.ts';
import { ConfigError, loadConfig, requireDatabaseUrl } from './load-config.ts';

describe('configuration', () => {
  test('OTEL_SDK_DISABLED is read in any case', () => {
    expect(
      ['TRUE', 'True', 'FALSE'].map((value) => loadConfig({ OTEL_SDK_DISABLED: value }).OTEL_SDK_DISABLED),
    ).toEqual(['true', 'true', 'false']);
  });

  test.each([
    [{}, [600, 6_000, 100, 10_000]],
    [{ RATE_LIMIT_PER_MINUTE: '7', STREAMS_PER_TOKEN: '8' }, [7, 7, 8, 8]],
    [{ RATE_LIMIT_PER_MINUTE: '7', RATE_LIMIT_PER_SERVICE_TOKEN: '9' }, [7, 9, 100, 10_000]],
    [{ STREAMS_PER_TOKEN: '8', STREAMS_PER_PERSON_TOKEN: '5', STREAMS_PER_SERVICE_TOKEN: '' }, [600, 6_000, 5, 8]],
  ])('%j: a limit of all tokens applies to each kind without a specific limit', (env, expected) => {
    const config = loadConfig(env);
    const requests = [config.RATE_LIMIT_PER_PERSON_TOKEN, config.RATE_LIMIT_PER_SERVICE_TOKEN];
    const streams = [config.STREAMS_PER_PERSON_TOKEN, config.STREAMS_PER_SERVICE_TOKEN];
    expect([...requests, ...streams]).toEqual(expected);
  });

  test('addresses are read from files', () => {
    const folder = mkdtempSync(join(tmpdir(), 'spool-config-'));
    const [DATABASE_URL_FILE, REDIS_URL_FILE] = ['database', 'redis'].map((name) => join(folder, name));
    writeFileSync(DATABASE_URL_FILE!, 'postgres://a:b@c/d\n');
    writeFileSync(REDIS_URL_FILE!, 'redis://e');
    const config = loadConfig({ DATABASE_URL_FILE, REDIS_URL_FILE });
    rmSync(folder, { recursive: true });
    expect(config).toMatchObject({ DATABASE_URL: 'postgres://a:b@c/d', REDIS_URL: 'redis://e' });
  });

  test('an empty variable counts as unset', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '' })).toEqual(loadConfig({}));
  });

  test.each([
    [{ PORT: 'abc' }, /^Wrong configuration: PORT: .*not "abc"$/],
    [{ PORT: '65536' }, /PORT/],
    [{ LEASE_MS: '1.5' }, /LEASE_MS/],
    [{ HEADERS_TIMEOUT_MS: '300001' }, /HEADERS_TIMEOUT_MS/],
    [{ LOG_LEVEL: 'loud' }, /LOG_LEVEL/],
    [{ QUEUE_NAME: 'a:b' }, /QUEUE_NAME/],
    [{ DATABASE_URL: 'mysql://x' }, /DATABASE_URL: must start with postgres:\/\/ or postgresql:\/\/$/],
    [{ DATABASE_URL: 'postgres://me:p#w@host/spool' }, /DATABASE_URL: is not a URL.*percent-encoded$/],
    [{ QUEUE_URL: 'postgres://me:p#w@host/spool' }, /QUEUE_URL: is not a URL/],
    [{ QUEUE_URL: 'redis://host:port' }, /QUEUE_URL: host 1 must be a name.*percent-encoded$/],
    [{ REDIS_URL: 'postgres://host' }, /REDIS_URL: must start with redis:\/\/ or rediss:\/\/ or redis\+sentinel:\/\//],
    [{ REDIS_URL: 'redis+sentinel://a,b' }, /REDIS_URL: must end with \/<master name>/],
    [{ REDIS_URL: 'rediss://a?cacert=/no/such.pem' }, /REDIS_URL: ENOENT.*'\/no\/such.pem'/],
    [{ PUBLIC_BASE_URL: 'https://' }, /PUBLIC_BASE_URL: is not a URL/],
    [{ DATABASE_POOL_SIZE: '0' }, /DATABASE_POOL_SIZE/],
    [{ MANIFEST_VARIABLES: 'A,DATABASE_URL' }, /MANIFEST_VARIABLES: DATABASE_URL belongs to the service/],
    [{ MANIFEST_VARIABLES: 'QUEUE_URL_FILE' }, /MANIFEST_VARIABLES: QUEUE_URL_FILE belongs to the service/],
    [{ MANIFEST_VARIABLES: 'AWS_SECRET_ACCESS_KEY' }, /AWS_SECRET_ACCESS_KEY belongs to the service/],
    [{ MANIFEST_VARIABLES: '*' }, /MANIFEST_VARIABLES: must be names of variables, or \*_ and an ending/],
    [{ MANIFEST_FILES: '/run/../etc' }, /MANIFEST_FILES: must be absolute paths/],
    [{ TOOL_SERVER_COMMANDS: 'npx' }, /TOOL_SERVER_COMMANDS: must be absolute paths/],
    [{ TOOL_SERVER_FOLDERS: '/' }, /TOOL_SERVER_FOLDERS: must be absolute paths/],
    [{ TOOL_SERVER_USER: '0:0' }, /TOOL_SERVER_USER: must be uid:gid/],
    [{ DATABASE_URL_FILE: '/no/such/file' }, /DATABASE_URL_FILE: cannot be read: ENOENT$/],
    [{ DATABASE_URL_FILE: '/etc/hostname', DATABASE_URL: 'postgres://a' }, /DATABASE_URL: is set; unset it or/],
  ])('%j stops the start with one line', (env, message) => {
    const start = () => loadConfig(env);
    expect(start).toThrow(ConfigError);
    expect(start).toThrow(message);
    expect(start).not.toThrow(/\n/);
  });

  test.each(['file:///var/lib/blobs', 's3://bucket', 's3://bucket/a/b?endpoint=http://minio:9000&region=eu-central-1'])(
    'accepts %s as BLOB_URL',
    (BLOB_URL) => expect(loadConfig({ BLOB_URL }).BLOB_URL).toBe(BLOB_URL),
  );

  test.each([
    'redis://a:1,b:2',
    'rediss+sentinel://me:secret@[::1]:26379,b/main/1',
    'redis+cluster://a',
    'postgres://a/b',
  ])('QUEUE_URL may be %s', (QUEUE_URL) => expect(loadConfig({ QUEUE_URL }).QUEUE_URL).toBe(QUEUE_URL));

  test('one error names every wrong setting', () => {
    expect(() => loadConfig({ PORT: 'x', LEASE_MS: 'y' })).toThrow(/PORT.*LEASE_MS/);
  });

  test('a URL, which may hold a password, is never repeated', () => {
    const wrong = [
      'http://me:secret@x',
      'redis://me:secret@x:y',
      'redis+sentinel://me:secret@x',
      'redis://:a/secret@x',
    ];
    for (const QUEUE_URL of wrong) {
      expect(() => loadConfig({ QUEUE_URL })).toThrow(ConfigError);
      expect(() => loadConfig({ QUEUE_URL })).not.toThrow(/secret/);
    }
  });

  const SECRET = 'secret'.padEnd(43, '0');

  test.each([
    ['a short secret', `k1:${SECRET.slice(0, 40)}`],
    ['one short secret of two', `k1:${SECRET},k2:secret`],
    ['a repeated id', `k1:${SECRET},k1:${SECRET}`],
    ['a character that is not base64', `k1:${SECRET}$`],
    ['a wrong character in the id', `k 1:${SECRET}`],
    ['no id', SECRET],
    ['no key', ','],
  ])('BROWSER_TOKEN_KEYS with %s is refused, and never repeated', (_, BROWSER_TOKEN_KEYS) => {
    const start = () => loadConfig({ BROWSER_TOKEN_KEYS });
    expect(start).toThrow(/^Wrong configuration: BROWSER_TOKEN_KEYS: must be id:secret.* in base64$/);
    expect(start).not.toThrow(/secret0|k1|k2/);
  });

  test('BROWSER_TOKEN_KEYS may be base64 and base64url, in their order', () => {
    const BROWSER_TOKEN_KEYS = loadConfig({
      BROWSER_TOKEN_KEYS: `k2:${SECRET}=, k-1:${SECRET.slice(2)}_-`,
    }).BROWSER_TOKEN_KEYS;
    const keys = parseSigningKeys(BROWSER_TOKEN_KEYS).map(({ id, secret }) => [id, secret.length]);
    expect(keys).toEqual([
      ['k2', 32],
      ['k-1', 32],
    ]);
  });

  test('a process without an embedded database must be given one', () => {
    expect(() => requireDatabaseUrl(loadConfig({}))).toThrow('DATABASE_URL: must be set');
  });
});
