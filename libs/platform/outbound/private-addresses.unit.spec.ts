import { isPublicAddress, parseAllowedAddresses } from './private-addresses.ts';

describe('isPublicAddress', () => {
  test.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8'])(
    '%s is public',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  test.each([
    ...['127.0.0.1', '127.255.0.1', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1'],
    ...['169.254.169.254', '192.0.0.1', '198.19.0.1', '203.0.113.9', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', 'fe80::1', 'fe80::1%lo', 'fc00::1', 'fd12::1', 'fec0::1', 'ff02::1', '2001:db8::1', '3fff::1'],
    ...['::ffff:127.0.0.1', '::ffff:a00:1', '::127.0.0.1', '::8.8.8.8', '64:ff9b::10.0.0.1', '64:ff9b:1::8.8.8.8'],
    ...['2002:7f00:1::', '2002:808:808::', '2001:0:1::1', '4000::1', '192.175.48.1', 'localhost', '', '8.8.8'],
  ])('%s is not public', (address) => expect(isPublicAddress(address)).toBe(false));
});

describe('the list of allowed addresses', () => {
  const isAllowed = (list: string, host: string, address: string, port = 80) =>
    parseAllowedAddresses(list)({ host, address, port });

  test.each([
    ['*', 'any', '10.0.0.1', 80],
    ['localhost', 'LOCALHOST.', '::1', 80],
    ['a.example , localhost:8080', 'localhost', '127.0.0.1', 8080],
    ['127.0.0.1', 'x', '127.0.0.1', 80],
    ['10.0.0.0/8:443', 'x', '10.9.9.9', 443],
    ['10.0.0.0/8', 'x', '::ffff:10.9.9.9', 80],
    ['::1', 'x', '::1', 80],
    ['[::1]:99', 'x', '::1', 99],
    ['[fd00::/8]:99', 'x', 'fd12::1', 99],
    ['fd00::/8', 'x', 'fd12::1%eth0', 80],
  ])('%s allows connections to %s at %s, port %i', (list, host, address, port) =>
    expect(isAllowed(list, host, address, port)).toBe(true),
  );

  test.each([
    ['', 'localhost', '127.0.0.1', 80],
    ['localhost:8080', 'localhost', '127.0.0.1', 80],
    ['localhost', 'localhost.example', '127.0.0.1', 80],
    ['10.0.0.0/8', 'x', '11.0.0.1', 80],
    ['[::1]:99', 'x', '::1', 80],
    ['127.0.0.1', 'localhost', '::1', 80],
    ['*:99', 'x', '10.0.0.1', 80],
  ])('%s does not allow connections to %s at %s, port %i', (list, host, address, port) =>
    expect(isAllowed(list, host, address, port)).toBe(false),
  );

  test.each([
    'http://localhost',
    '10.0.0.0/33',
    'a:b',
    'a:0',
    'a:70000',
    '[a]:1',
    '1.2.3',
    'a b',
    '::1/129',
    '10.0.0.1%x/8',
    'fe80::1%eth0',
    'x/8',
    ':80',
    '[::1',
  ])('the error for %s names it', (entry) =>
    expect(() => parseAllowedAddresses(`localhost,${entry}`)).toThrow(JSON.stringify(entry)),
  );
});
