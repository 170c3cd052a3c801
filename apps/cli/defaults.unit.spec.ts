import { run } from './cli.testing.ts';
import { EXIT } from './exit-codes.ts';

const ID = '01JD0000000000000000000000';
const minted = { token: { id: ID, name: 'ci' }, secret: `spool_op_${'A'.repeat(48)}` };
const once = { token: { oldSecretUntil: null } };

test.each([
  [[], 3_600],
  [['--grace', '7d'], 604_800],
  [['--now', '--yes'], 0],
])('token rotate %j keeps the old secret for %i seconds', async (options, graceSeconds) => {
  const { calls } = await run(['token', 'rotate', ID, ...options], { getToken: once, rotateToken: minted });
  expect(calls.at(-1)).toEqual({ name: 'rotateToken', input: { params: { tokenId: ID }, body: { graceSeconds } } });
});

test('token rotate asks before it ends the secret of an earlier rotation', async () => {
  const getToken = { token: { oldSecretUntil: '2026-11-29T12:00:00.000Z' } };
  const asked = await run(['token', 'rotate', ID], { getToken });
  expect([asked.code, asked.calls.map(({ name }) => name)]).toEqual([EXIT.usage, ['getToken']]);
  expect(asked.err).toContain('The secret before the last rotation works until 2026-11-29T12:00:00.000Z.');
  const agreed = await run(['token', 'rotate', ID, '--yes'], { getToken, rotateToken: minted });
  expect(agreed.calls.at(-1)?.name).toBe('rotateToken');
});

test('token rotate rejects --now together with --grace', async () => {
  const { code, calls } = await run(['token', 'rotate', ID, '--now', '--grace', '1h', '--yes'], {});
  expect([code, calls]).toEqual([EXIT.usage, []]);
});

test.each([
  [[], 'false'],
  [['--sessions'], undefined],
  [['--action', 'session.opened'], undefined],
])('audit %j hides sign-ins unless they are asked for', async (options, sessions) => {
  const { calls } = await run(['audit', ...options], { listAudit: { entries: [], nextCursor: null } });
  expect((calls[0]!.input as { query: { sessions?: string } }).query.sessions).toBe(sessions);
});
