import { randomBytes } from 'node:crypto';
import { findBoundId, makeSessionSecrets } from './session-id.ts';

const newValue = (): string => randomBytes(32).toString('base64url');

it('finds the id of the key at any position', () => {
  const { id, pageKey } = makeSessionSecrets();
  const others = ['', 'x', newValue(), makeSessionSecrets().id, `${id}A`];
  for (let at = 0; at <= others.length; at++) {
    expect(findBoundId([...others.slice(0, at), id, ...others.slice(at)], pageKey)).toBe(id);
  }
  expect(findBoundId(others, pageKey)).toBeNull();
});

it('finds no id with another or a malformed key', () => {
  const { id, pageKey } = makeSessionSecrets();
  for (const key of ['', makeSessionSecrets().pageKey, pageKey.slice(1), `${pageKey}A`, ` ${pageKey}`]) {
    expect([key, findBoundId([id], key)]).toEqual([key, null]);
  }
});

it('finds no id with a flipped bit', () => {
  const { id, pageKey } = makeSessionSecrets();
  for (let bit = 0; bit < 256; bit++) {
    const bytes = Buffer.from(id, 'base64url');
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    expect(findBoundId([bytes.toString('base64url')], pageKey)).toBeNull();
  }
});

it('makes different secrets each time', () => {
  const made = Array.from({ length: 100 }, makeSessionSecrets).flatMap(({ id, pageKey }) => [id, pageKey]);
  expect(new Set(made).size).toBe(200);
});
