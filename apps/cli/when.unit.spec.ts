import { InvalidArgumentError } from 'commander';
import { parseDuration, parseExpiry, parseNewExpiry, parseSince } from './when.ts';

test.each([
  ['90s', 90],
  ['30m', 1_800],
  ['12h', 43_200],
  ['30d', 2_592_000],
  ['2w', 1_209_600],
])('%s is %d seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test.each(['', '30', 'd', '-1d', '1.5h', '1y', 'in 30d', '9999999d'])('“%s” is no duration', (text) => {
  expect(() => parseDuration(text)).toThrow(InvalidArgumentError);
});

test.each([
  ['2027-01-31', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T12:00:00Z', '2027-01-31T12:00:00.000Z'],
  ['2027-01-31T12:00:00.5+02:00', '2027-01-31T10:00:00.500Z'],
])('%s is %s', (text, time) => {
  expect(parseExpiry(text)).toBe(time);
  expect(parseSince(text)).toBe(time);
});

test.each([
  '2027-02-30',
  '2027-13-01',
  '2027-01-31T12:00:00',
  '2027-01-31T25:00:00Z',
  'tomorrow',
  '1769860800000',
  'never',
])('“%s” is no time', (text) => {
  expect(() => parseExpiry(text)).toThrow(InvalidArgumentError);
});

test('a duration is from now on, or back from now', () => {
  const day = 86_400_000;
  expect(Math.abs(Date.parse(parseExpiry('30d')) - Date.now() - 30 * day)).toBeLessThan(day);
  expect(Math.abs(Date.parse(parseSince('30d')) - Date.now() + 30 * day)).toBeLessThan(day);
});

test('never is no expiry', () => {
  expect(parseNewExpiry('never')).toBeNull();
});
