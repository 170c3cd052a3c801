import { parseRedisAddress } from './redis-address.ts';

const at = (host: string, port: number) => ({ host, port });

describe('parseRedisAddress', () => {
  test.each([
    ['redis://localhost', { kind: 'single', hosts: [at('localhost', 6379)], db: 0 }],
    ['redis://redis_1:6380/', { kind: 'single', hosts: [at('redis_1', 6380)], db: 0 }],
    ['redis://10.0.0.1:6380/3', { kind: 'single', hosts: [at('10.0.0.1', 6380)], db: 3 }],
    ['redis://host?family=6', { kind: 'single', hosts: [at('host', 6379)], db: 0, family: 6 }],
    ['rediss://host', { kind: 'single', hosts: [at('host', 6379)], db: 0, tls: {} }],
    ['redis://[::1]', { kind: 'single', hosts: [at('::1', 6379)], db: 0 }],
    ['redis://[fe80::1]:7000', { kind: 'single', hosts: [at('fe80::1', 7000)], db: 0 }],
    ['redis://a,b:7001,[::1]:7002', { kind: 'cluster', hosts: [at('a', 6379), at('b', 7001), at('::1', 7002)], db: 0 }],
    ['redis+cluster://entry/0', { kind: 'cluster', hosts: [at('entry', 6379)], db: 0 }],
    ['rediss+cluster://entry:7000', { kind: 'cluster', hosts: [at('entry', 7000)], db: 0, tls: {} }],
    [
      'redis+sentinel://a,b:26380/main',
      { kind: 'sentinel', hosts: [at('a', 26379), at('b', 26380)], db: 0, sentinel: { master: 'main' } },
    ],
    [
      'rediss+sentinel://a/my%2Fmain/2',
      { kind: 'sentinel', hosts: [at('a', 26379)], db: 2, tls: {}, sentinel: { master: 'my/main' } },
    ],
  ])('parses %s', (text, expected) => {
    expect(parseRedisAddress(text)).toEqual(expected);
  });

  test.each([
    ['redis://me:secret@host', { username: 'me', password: 'secret' }],
    ['redis://:secret@host', { password: 'secret' }],
    ['redis://me@host', { username: 'me' }],
    ['redis://me:p%40s%2Fs%3A%23%25%2C@a,b', { username: 'me', password: 'p@s/s:#%,' }],
    ['redis://me:a:b@c@host', { username: 'me', password: 'a:b@c' }],
  ])('reads user and password of %s', (text, expected) => {
    const { username, password } = parseRedisAddress(text);
    expect({ username, password }).toEqual(expected);
  });

  test('reads a separate user and password for Sentinels', () => {
    const { username, password, sentinel } = parseRedisAddress(
      'redis+sentinel://me:secret@a/main?sentinelUsername=watch&sentinelPassword=a+b%26c=',
    );
    expect({ username, password }).toEqual({ username: 'me', password: 'secret' });
    expect(sentinel).toEqual({ master: 'main', username: 'watch', password: 'a+b&c=' });
  });

  test('reads the paths of certificate files', () => {
    const { tls } = parseRedisAddress(
      'rediss://host?cacert=/etc/ca.pem&cert=/etc/c.pem&key=/etc/k.pem&servername=redis',
    );
    expect(tls).toEqual({ cacert: '/etc/ca.pem', cert: '/etc/c.pem', key: '/etc/k.pem', servername: 'redis' });
  });

  test.each([
    ['redis://', /^host 1 must be a name/],
    ['redis:///0', /^host 1/],
    ['http://host', /^is not a Redis address/],
    ['redis+magic://host', /^is not a Redis address/],
    ['redis://host#1', /^is not a Redis address.*percent-encoded$/],
    ['redis://host:port', /^host 1/],
    ['redis://host:0', /^host 1/],
    ['redis://host:65536', /^host 1/],
    ['redis://::1', /^host 1/],
    ['redis://[::g]:1', /^host 1/],
    ['redis://a,,b', /^host 2/],
    ['redis://a, b', /^host 2/],
    ['redis://:geheim/nis@host', /^host 1.*percent-encoded$/],
    ['redis://:geheim%@host', /% without two hex digits; .*percent-encoded$/],
    ['redis://:geheim?x@host', /^(host 1|has an unknown parameter)/],
    ['redis://host/one', /^must end with \/<database number>/],
    ['redis://host/1/2', /^must end with \/<database number>/],
    ['redis://a,b/1', /^must not name a database/],
    ['redis+cluster://a/1', /^must not name a database/],
    ['redis+sentinel://a', /^must end with \/<master name>/],
    ['redis+sentinel://a/', /^must end with \/<master name>/],
    ['redis+sentinel://a/main/x', /^must end with \/<master name>\/<database number>/],
    ['redis://host?maxRetriesPerRequest=geheim', /^has an unknown parameter; allowed: family$/],
    ['redis://host?cacert=/geheim', /^has an unknown parameter; allowed: family$/],
    [
      'rediss://host?sentinelPassword=geheim',
      /^has an unknown parameter; allowed: family, cacert, cert, key, servername$/,
    ],
    ['rediss://host?cert=/geheim', /cert and key together/],
    ['rediss://host?cacert=/a&cacert=/b', /cacert more than once/],
    ['rediss://host?cacert=', /cacert without a value/],
    ['redis://host?family=5', /^must have a family/],
  ])('rejects %s without repeating any of it', (text, message) => {
    const parse = () => parseRedisAddress(text);
    expect(parse).toThrow(RangeError);
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(/geheim/);
  });
});
