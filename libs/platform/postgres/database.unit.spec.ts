import { DatabaseUnavailable, isDatabaseUnavailable, toRfc3339 } from './database.ts';

describe('toRfc3339', () => {
  test.each([
    ['2026-11-21 05:50:08+00', '2026-11-21T05:50:08.000Z'],
    ['2026-11-21 05:50:08.1+00', '2026-11-21T05:50:08.100Z'],
    ['2026-11-21 05:50:08.123+00', '2026-11-21T05:50:08.123Z'],
    ['2026-11-21 05:50:08.123456+00', '2026-11-21T05:50:08.123Z'],
    ['2026-11-21 05:50:08.123+02', '2026-11-21T03:50:08.123Z'],
  ])('%s', (text, expected) => {
    expect(toRfc3339(text)).toBe(expected);
  });
});

describe('isDatabaseUnavailable', () => {
  const coded = (code: string) => Object.assign(new Error('x'), { code });

  test.each([
    ...['ECONNREFUSED', 'ECONNRESET', 'EAI_AGAIN'],
    ...['08006', '57P01', '57P02', '57P03', '53100', '53300', '58030', 'XX000', '25P03'],
  ])('treats %s as unavailable', (code) => {
    expect(isDatabaseUnavailable(coded(code))).toBe(true);
  });

  test.each(['23505', '40001', '57014', '22P02', '42601'])('does not treat %s as unavailable', (code) => {
    expect(isDatabaseUnavailable(coded(code))).toBe(false);
  });

  test('recognizes errors of pg that have no code', () => {
    expect(isDatabaseUnavailable(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isDatabaseUnavailable(new Error('Client was closed and is not queryable'))).toBe(true);
    expect(isDatabaseUnavailable(new Error('timeout exceeded when trying to connect'))).toBe(true);
    expect(isDatabaseUnavailable(new DatabaseUnavailable(new Error('x')))).toBe(true);
    expect(isDatabaseUnavailable(new Error('something else'))).toBe(false);
  });
});
