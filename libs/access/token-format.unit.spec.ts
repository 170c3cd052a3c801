import { hashToken, isToken, makeToken } from './token-format.ts';

it.each([
  ['person', /^spool_pat_[A-Za-z0-9_-]{48}$/],
  ['service', /^spool_svc_[A-Za-z0-9_-]{48}$/],
  ['operator', /^spool_op_[A-Za-z0-9_-]{48}$/],
] as const)('makes %s tokens with a recognizable form', (kind, form) => {
  const token = makeToken(kind);
  expect(token).toMatch(form);
  expect(isToken(token)).toBe(true);
  expect(makeToken(kind)).not.toBe(token);
});

it('rejects a token with any single wrong character', () => {
  const token = makeToken('person');
  for (let i = 0; i < token.length; i++) {
    const other = token.charAt(i) === 'A' ? 'B' : 'A';
    expect([i, isToken(token.slice(0, i) + other + token.slice(i + 1))]).toEqual([i, false]);
  }
});

it('rejects text of other forms', () => {
  const token = makeToken('person');
  const others = [
    '',
    'sk-123',
    token.slice(0, -1),
    `${token}A`,
    token.replace('pat', 'svc'),
    token.toUpperCase(),
    `x${token}`,
  ];
  for (const other of others) expect([other, isToken(other)]).toEqual([other, false]);
});

it('hashes a token to 32 bytes', () => {
  const token = makeToken('person');
  expect(hashToken(token)).toHaveLength(32);
  expect(hashToken(token)).toEqual(hashToken(token));
  expect(hashToken(token)).not.toEqual(hashToken(makeToken('person')));
});
