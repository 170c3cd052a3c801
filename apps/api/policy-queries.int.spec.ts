import { PolicyWatch } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest } from './api-under-test.testing.ts';
import { recordStatements } from './sent-statements.testing.ts';

// Real: HTTP, PostgreSQL. Not real: the age of a read of the policy version. After a pause of the machine, the process would
// correctly distrust all reads, and read everything again.

const LOOK = 'select version::text as version from policy_version';
/** The heartbeat of the connection that listens for wake-ups. The process sends it without a request. */
const HEARTBEAT = 'select';
/** The look for bulk actions of processes that ended, every 3 s (libs/admin/bulk). */
const BULK_LOOK = 'lease-action';

let api: ApiUnderTest;
let threadId: string;
let service: string;
let sent: string[];

beforeAll(async () => {
  sent = recordStatements();
  jest.spyOn(PolicyWatch.prototype, 'ageOf').mockReturnValue(0);
  const BROWSER_TOKEN_KEYS = `k:${'a'.repeat(43)}=`;
  api = await ApiUnderTest.start({ settings: { RATE_LIMIT_STORE: 'process', BROWSER_TOKEN_KEYS } });
  threadId = await api.newThread();
  const { organizationId, agentId } = api;
  const wanted = { kind: 'service', organizationId, agentIds: [agentId], name: 'app' } as const;
  service = (await api.access.mintToken(wanted)).token;
  // After two reads of the policy version, everything is read under the final version, because no test changes the policy. The
  // first read may have begun before the last change.
  const before = looks();
  await eventually(() => looks() >= before + 2, { what: 'the watch has looked' });
  await get(`/threads/${threadId}`);
  const used = 'select from tokens where last_used_at is not null';
  await eventually(async () => (await api.pool.query(used)).rowCount === 1, { what: 'its use is written' });
});
afterAll(async () => {
  await api.stop();
  jest.restoreAllMocks();
});

const looks = (): number => sent.filter((statement) => statement === LOOK).length;
const others = (): string[] => sent.filter((statement) => ![LOOK, HEARTBEAT, BULK_LOOK].includes(statement));

async function get(path: string): Promise<void> {
  expect((await api.get(path)).status).toBe(200);
}

/**
 * Returns the statements of these requests, without reads of the policy version. policy-versions.int.spec.ts tests that there
 * is one such read a second. Here it only matters that not each request causes one.
 */
async function sentFor(requests: number, path: string): Promise<string[]> {
  sent.length = 0;
  for (let i = 0; i < requests; i++) await get(path);
  expect(looks()).toBeLessThan(requests / 2);
  return others();
}

it('500 requests of GET /agents/{id} send no query', async () => {
  expect(await sentFor(500, `/agents/${api.agentId}`)).toEqual([]);
});

it('the first requests of 50 browser tokens send no query once their service token is known', async () => {
  const tokenOf = async (userId: string): Promise<string> => {
    const { json } = await api.post('/browser-tokens', { token: service, body: { userId, verbs: ['read'] } });
    return (json as unknown as { token: string }).token;
  };
  const [known, ...tokens] = await Promise.all(Array.from({ length: 51 }, (_, i) => tokenOf(`user ${i}`)));
  const read = (token: string | undefined) => api.get(`/agents/${api.agentId}`, { token: token! });
  expect((await read(known)).status).toBe(200);
  sent.length = 0;
  for (const token of tokens) expect((await read(token)).status).toBe(200);
  expect(others()).toEqual([]);
});

it('GET /threads/{id} sends one query, find-thread', async () => {
  expect(await sentFor(50, `/threads/${threadId}`)).toEqual(Array(50).fill('find-thread'));
});

it('checking the access of an open stream again sends no query', async () => {
  sent.length = 0;
  const headers = { authorization: `Bearer ${api.token}` };
  const stream = await fetch(`${api.url}/threads/${threadId}/events/stream`, { headers });
  // The process checks all streams every second.
  await eventually(() => looks() >= 3, { what: 'two seconds have passed' });
  await stream.body?.cancel();
  const ofHub = new Set(['find-thread-with-log', 'read-log-page', 'read-moved-threads']);
  expect(others().filter((statement) => !ofHub.has(statement))).toEqual([]);
  expect(others()).toContain('find-thread-with-log');
});
