import type { AdminOperationName } from '#contract';
import { verify } from '#projections';
import { type ManyThreads, reportLatency, seedManyThreads } from '#testing';
import { AdminUnderTest, type Sent } from './admin-under-test.testing.ts';

// Measures each read on a large installation: 10,000 Threads, 17,000 Runs, 200,000 events.

/** The longest time of a read, ten times that on a quiet machine. */
const BOUND_MS = 300;

let admin: AdminUnderTest;
let seeded: ManyThreads;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  seeded = await seedManyThreads(admin.pool);
}, 120_000);
afterAll(() => admin.stop());

test('the seeded data pass verify', async () => {
  const { rows } = await admin.pool.query<Record<string, number>>(
    `select (select count(*)::integer from streams) as threads, (select count(*)::integer from run_summaries) as runs,
            (select count(*)::integer from events) as events, (select count(*)::integer from run_work) as live`,
  );
  const { threads = 0, runs = 0, events = 0, live = 0 } = rows[0]!;
  expect(threads).toBeGreaterThan(10_000);
  expect(runs).toBeGreaterThan(17_000);
  expect(events).toBeGreaterThan(180_000);
  expect(live).toBeGreaterThan(60);
  const { findings, streams } = await verify(admin.pool);
  expect({ findings, streams }).toEqual({ findings: [], streams: threads });
}, 120_000);

const ago = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();

/** The calls of each operation with every filter. The number is the minimum count of items. */
const CALLS: [AdminOperationName, string, (world: ManyThreads & { runId: string }) => Sent, number?][] = [
  ...([5, 60, 1_440, 10_080].map((windowMinutes) => [
    'getOverview',
    `of ${windowMinutes} minutes`,
    () => ({ query: { windowMinutes } }),
  ]) as typeof CALLS),
  ['getQueue', '', () => ({})],
  ['listRuns', 'live', () => ({}), 60],
  ['listRuns', 'live, waiting', () => ({ query: { status: 'waiting_input' } }), 20],
  ['listRuns', 'live, of an Agent', ({ agentIds }) => ({ query: { agentId: agentIds[1] } }), 1],
  ['listRuns', 'all', () => ({ query: { scope: 'all' } }), 100],
  ['listRuns', 'all, failed', () => ({ query: { scope: 'all', status: 'failed' } }), 100],
  ['listRuns', 'all, by error', () => ({ query: { scope: 'all', errorCode: 'provider_auth' } }), 100],
  ['listRuns', 'all, by an error that none has', () => ({ query: { scope: 'all', errorCode: 'none' } }), 0],
  ['listRuns', 'all, of an Agent', ({ agentIds }) => ({ query: { scope: 'all', agentId: agentIds[7] } }), 100],
  ['listRuns', 'all, of no Agent', ({ runId }) => ({ query: { scope: 'all', agentId: runId } }), 0],
  ['listRuns', 'all, of an organization', ({ organizationId }) => ({ query: { scope: 'all', organizationId } }), 100],
  ['listRuns', 'all, since', () => ({ query: { scope: 'all', since: ago(1) } }), 100],
  ['listRuns', 'all, of a status that none has', () => ({ query: { scope: 'all', status: 'booting' } }), 0],
  ['listRuns', 'of a Thread', ({ threadId }) => ({ query: { threadId } }), 2],
  ['getRun', '', ({ runId }) => ({ params: { runId } })],
  ['listThreads', 'all', () => ({}), 100],
  ['listThreads', 'of an Agent', ({ agentIds }) => ({ query: { agentId: agentIds[7] } }), 100],
  ['listThreads', 'of an organization', ({ organizationId }) => ({ query: { organizationId } }), 100],
  ['listThreads', 'of an owner', ({ personId }) => ({ query: { ownerPersonId: personId } }), 100],
  ['listThreads', 'of a token', ({ personId }) => ({ query: { ownerTokenId: personId } }), 0],
  ['listThreads', 'of a user', () => ({ query: { userId: 'user-00000007' } }), 1],
  ['listThreads', 'with a reference', () => ({ query: { externalRef: 'order-00000007' } }), 1],
  ['listThreads', 'by a reference', () => ({ query: { search: 'order-00000007' } }), 1],
  ['listThreads', 'of no user', () => ({ query: { userId: 'nobody' } }), 0],
  ['listThreads', 'of a status', () => ({ query: { status: 'RUNNING' } }), 40],
  ['listThreads', 'archived', () => ({ query: { archived: 'true' } }), 0],
  ['listThreads', 'by id', ({ threadId }) => ({ query: { search: threadId.toLowerCase() } }), 1],
  ['listThreads', 'by a Run’s id', ({ runId }) => ({ query: { search: runId } }), 1],
  ['listThreads', 'by a user id', () => ({ query: { search: 'user-00000007' } }), 1],
  ['listThreads', 'by words of all titles', ({ titleWords }) => ({ query: { search: titleWords } }), 100],
  ['listThreads', 'by words of one title', () => ({ query: { search: 'question 00004711' } }), 1],
  ['listThreads', 'by words of none', () => ({ query: { search: 'nothing has this' } }), 0],
  ['getThread', '', ({ threadId }) => ({ params: { threadId } }), 2],
  ['listAudit', '', () => ({}), 100],
  ['listAudit', 'of an actor', () => ({ query: { actorId: 'operator 1' } }), 100],
  ['listAudit', 'of an action', () => ({ query: { action: 'token' } }), 100],
  ['listAudit', 'of an unused action', () => ({ query: { action: 'nothing' } }), 0],
  ['listAudit', 'since', () => ({ query: { since: ago(24) } }), 100],
  ['listTokens', '', () => ({}), 100],
  ['listTokens', 'active, of a person', ({ personId }) => ({ query: { personId, status: 'active' } }), 100],
  ['listAgents', '', () => ({}), 40],
  ['listAgents', 'of an organization', ({ organizationId }) => ({ query: { organizationId } }), 40],
];

describe('a read of a large installation is fast enough', () => {
  for (const [name, how, sentFor, atLeast] of CALLS) {
    test(`${name} ${how}`, async () => {
      const { runs } = await admin.do('getThread', { params: { threadId: seeded.threadId } });
      const sent = sentFor({ ...seeded, runId: runs[0]!.id });
      const startedAt = performance.now();
      const { status, json, text } = await admin.send(name, sent);
      const tookMs = performance.now() - startedAt;
      expect([status, text]).toEqual([200, text]);
      const list = Object.values(json as object).find((value): value is unknown[] => Array.isArray(value));
      if (atLeast === 0) expect(list).toEqual([]);
      else expect(list?.length ?? 0).toBeGreaterThanOrEqual(atLeast ?? 0);
      reportLatency(BOUND_MS, tookMs, `${name} ${how} took`);
    }, 10_000);
  }
});
