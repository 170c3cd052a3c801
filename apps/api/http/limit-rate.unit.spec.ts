import { networkOf } from './limit-rate.ts';

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::7', '2001:db8:0:0'],
  ['2001:0DB8::7', '2001:db8:0:0'],
  ['fe80::1%br-lan', 'fe80::1%br-lan'],
  ['::1', '0:0:0:0'],
  ['2001:db8:1:2::', '2001:db8:1:2'],
])('counts requests from %s by %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
