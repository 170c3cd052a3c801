import { CommandError } from './exit-codes.ts';
import { findService, type Env } from './service-address.ts';

const SPOOL_TOKEN = `spool_op_${'A'.repeat(48)}`;

test.each([
  ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
  ['https://spool.example.com/', 'https://spool.example.com'],
  ['https://spool.example.com/api/v1', 'https://spool.example.com'],
  ['https://spool.example.com/admin/v1/', 'https://spool.example.com'],
])('SPOOL_URL %s', async (SPOOL_URL, origin) => {
  expect(await findService({ SPOOL_URL, SPOOL_TOKEN })).toEqual({ origin, token: SPOOL_TOKEN });
});

test('white space around a token is not part of it', async () => {
  const { token } = await findService({ SPOOL_URL: 'http://x', SPOOL_TOKEN: ` ${SPOOL_TOKEN}\n` });
  expect(token).toBe(SPOOL_TOKEN);
});

test('a variable that is empty is as one that is not set', async () => {
  const asked = findService({ SPOOL_URL: 'http://x', SPOOL_TOKEN: '', SPOOL_TOKEN_FILE: '/no/such/file' });
  await expect(asked).rejects.toThrow('/no/such/file cannot be read');
});

const SPOOL_URL = 'http://x';
test.each<[string, Env, string]>([
  ['a URL without a token', { SPOOL_URL }, 'usage'],
  ['a token without a URL', { SPOOL_TOKEN }, 'usage'],
  ['two tokens', { SPOOL_URL, SPOOL_TOKEN, SPOOL_TOKEN_FILE: '/x' }, 'usage'],
  ['a token with a line break within', { SPOOL_URL, SPOOL_TOKEN: `${SPOOL_TOKEN}\nx` }, 'usage'],
  ['a URL with a password', { SPOOL_URL: `http://me:${SPOOL_TOKEN}@x`, SPOOL_TOKEN }, 'usage'],
  ['a URL with a path', { SPOOL_URL: `http://x/${SPOOL_TOKEN}`, SPOOL_TOKEN }, 'usage'],
  ['no URL at all', { SPOOL_URL: SPOOL_TOKEN, SPOOL_TOKEN }, 'usage'],
  ['another protocol', { SPOOL_URL: 'ftp://x', SPOOL_TOKEN }, 'usage'],
  ['a file that is not there', { SPOOL_URL, SPOOL_TOKEN_FILE: '/no/such/file' }, 'usage'],
  ['nothing, and no running npm start', { DATA_DIR: '/no/such/folder' }, 'away'],
])('%s is refused, without showing the token', async (_, env, exit) => {
  const error: unknown = await findService(env).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CommandError);
  expect(error).toMatchObject({ exit });
  expect((error as Error).message).not.toContain('AAAA');
});
