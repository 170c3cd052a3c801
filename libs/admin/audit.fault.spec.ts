import { faultProxy } from '#testing';
import { apply, idleThread, openFixture, openProcess, readAll } from '../event-store/store.testing.ts';
import { auditHook } from './audit.ts';

// Real: PostgreSQL, and a TCP proxy in front of it, which drops the response to a commit.

test('applies a change once, with one audit entry, if the response to its commit is lost', async () => {
  const on = await openFixture();
  const proxy = await faultProxy(Number(new URL(on.url).port || 5432));
  const behind = await openProcess(proxy.through(on.url));
  const { threadId, version } = await idleThread(on);
  const actor = { kind: 'operator', id: 'TOKEN', name: 'on call' } as const;
  const hook = () => auditHook(actor, { action: 'thread.terminated', targetId: threadId });
  const dropped = proxy.dropNextAnswer((request) => request.includes('commit'));
  await apply(behind.handler, { threadId, commands: [{ type: 'terminate_thread' }], hook });
  await dropped;
  const { rows } = await on.admin.query('select action, target_id, actor_id from audit_entries');
  expect(rows).toEqual([{ action: 'thread.terminated', target_id: threadId, actor_id: 'TOKEN' }]);
  const events = (await readAll(on, threadId)).slice(version).map(({ type }) => type);
  expect(events).toEqual(['thread.terminated', 'thread.status_entered']);
  await behind.close();
  await proxy.close();
  await on.close();
});
