import { SignJWT, UnsecuredJWT } from 'jose';
import { BrowserTokens, isBrowserToken, type BrowserClaims } from './browser-tokens.ts';
import { FileLinks } from './file-links.ts';
import { SignedTokens } from './signed-tokens.ts';

const secretOf = (text: string): Uint8Array => Buffer.from(text.repeat(32).slice(0, 32));
const OLD = { id: 'old', secret: secretOf('o') };
const NEW = { id: 'new', secret: secretOf('n') };
const CLAIMS: BrowserClaims = {
  parentId: 'PARENT',
  userId: 'user 1 ü',
  agentId: 'AGENT',
  threadId: null,
  verbs: ['read', 'send'],
  origins: ['https://app.example'],
};
const NOW = Date.UTC(2026, 0, 1);
type Keys = { id: string; secret: Uint8Array }[];
const at = (now: () => number, ...keys: Keys) => new BrowserTokens(new SignedTokens(keys, now));
const tokens = (...keys: Keys) => at(() => NOW, ...keys);

test('a token keeps its claims, also after its key is no longer the first', async () => {
  const { token, expiresAt } = await tokens(OLD).make(CLAIMS, 900);
  expect([isBrowserToken(token), expiresAt]).toEqual([true, '2026-01-01T00:15:00.000Z']);
  expect(await tokens(OLD).verify(token)).toMatchObject(CLAIMS);
  expect(await tokens(NEW, OLD).verify(token)).toMatchObject(CLAIMS);
  expect(await tokens(NEW).verify(token)).toBeNull();
  const unlimited = { ...CLAIMS, agentId: null, origins: null };
  expect(await tokens(OLD).verify((await tokens(OLD).make(unlimited, 900)).token)).toMatchObject(unlimited);
});

test('it expires, also for a process that has verified it before', async () => {
  let now = NOW;
  const clocked = at(() => now, OLD);
  const { token } = await clocked.make(CLAIMS, 60);
  now += 59_999;
  expect(await clocked.verify(token)).toMatchObject(CLAIMS);
  now += 1;
  expect(await clocked.verify(token)).toBe('expired');
  expect(await at(() => now, OLD).verify(token)).toBe('expired');
  expect(await at(() => now, NEW).verify(token)).toBeNull();
});

test('a short token is verified once until it expires, and a long one each time', async () => {
  let now = NOW;
  const signed = new SignedTokens([OLD], () => now);
  const cached = new BrowserTokens(signed);
  const verify = jest.spyOn(signed, 'verify');
  const place = { agentId: 'A'.repeat(26), threadId: 'T'.repeat(26), parentId: 'P'.repeat(26) };
  const verbs = ['read', 'send', 'decide', 'upload', 'manage'];
  const { token: short } = await cached.make({ ...CLAIMS, ...place, verbs }, 60);
  const { token: long } = await cached.make({ ...CLAIMS, userId: '😀'.repeat(254) }, 60);
  const timesFor = async (token: string, expected: unknown) => {
    verify.mockClear();
    for (let i = 0; i < 3; i++) expect(await cached.verify(token)).toEqual(expected);
    return verify.mock.calls.length;
  };
  expect(await timesFor(short, expect.objectContaining({ verbs }))).toBe(1);
  expect(await timesFor(long, expect.objectContaining({ userId: '😀'.repeat(254) }))).toBe(3);
  now += 60_000;
  // The first of these requests drops the token from the cache.
  expect(await timesFor(short, 'expired')).toBe(2);
});

test('the prefix and the type tell a browser token from a file link', async () => {
  const signed = new SignedTokens([OLD], () => NOW);
  const caller = { kind: 'service', tokenId: 'PARENT' } as Parameters<FileLinks['make']>[1];
  const { token: link } = await new FileLinks(signed).make('FILE', caller);
  const { token } = await new BrowserTokens(signed).make(CLAIMS, 60);
  expect(isBrowserToken(link)).toBe(false);
  expect(await tokens(OLD).verify(`spool_bt_${link}`)).toBeNull();
  const links = new FileLinks(signed);
  expect(await links.verify(link)).toMatchObject({ fileId: 'FILE' });
  expect([await links.verify(token), await links.verify(token.slice('spool_bt_'.length))]).toEqual([null, null]);
});

test('a single wrong character makes it invalid', async () => {
  const { token } = await tokens(OLD).make(CLAIMS, 900);
  // The last character of the signature has two unused bits; base64url decoders may accept other values of them.
  for (let i = 0; i < token.length - 1; i++) {
    const other = token.charAt(i) === 'A' ? 'B' : 'A';
    const changed = token.slice(0, i) + other + token.slice(i + 1);
    expect([i, isBrowserToken(changed) ? await tokens(OLD).verify(changed) : null]).toEqual([i, null]);
  }
});

describe('a JWT that Spool did not make is invalid', () => {
  const payload = { parent: 'PARENT', verbs: ['read'] };
  const signed = (header: { alg?: string; typ?: string; kid?: string }, claims: object = payload): Promise<string> =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'HS256', typ: 'spool-bt+jwt', kid: 'old', ...header })
      .setSubject('u')
      .setExpirationTime(NOW / 1_000 + 60)
      .sign(header.alg === 'HS512' ? Buffer.concat([OLD.secret, OLD.secret]) : OLD.secret);
  it.each<[string, () => Promise<string>, unknown]>([
    ['a control, which is valid', () => signed({}), expect.objectContaining({ userId: 'u' })],
    ['another algorithm', () => signed({ alg: 'HS512' }), null],
    ['another type', () => signed({ typ: 'JWT' }), null],
    ['an unknown kid', () => signed({ kid: 'constructor' }), null],
    ['a missing claim', () => signed({}, { parent: 'PARENT' }), null],
    ['a claim of another form', () => signed({}, { parent: 'PARENT', verbs: 'read' }), null],
    ['no signature', async () => new UnsecuredJWT(payload).setSubject('u').setExpirationTime('1h').encode(), null],
    ['no text', async () => '', null],
  ])('%s', async (_, make, expected) => {
    expect(await tokens(OLD).verify(`spool_bt_${await make()}`)).toEqual(expected);
  });
});
