import { PolicyWatch } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest } from './api-under-test.testing.ts';
import { recordStatements } from './sent-statements.testing.ts';

// Real: HTTP, PostgreSQL. Not real: the age of a look at the policy version, because after a pause of the machine the process
// correctly trusts no look, and reads everything again.

const LOOK = 'select version::text as version from policy_version';
/** What else a process sends that nobody asks for: the heartbeat of the connection that listens for wake-ups. */
const HEARTBEAT = 'select';

let api: ApiUnderTest;
let threadId: string;
let sent: string[];

beforeAll(async () => {
  sent = recordStatements();
  jest.spyOn(PolicyWatch.prototype, 'ageOf').mockReturnValue(0);
  api = await ApiUnderTest.start({ settings: { RATE_LIMIT_STORE: 'process' } });
  threadId = await api.newThread();
  // Then all is read under the version that stays, for nothing here changes who may do what. Two: the first look may have
  // begun before the last change.
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
const others = (): string[] => sent.filter((statement) => ![LOOK, HEARTBEAT].includes(statement));

async function get(path: string): Promise<void> {
  expect((await api.get(path)).status).toBe(200);
}

/**
 * What requests send to PostgreSQL, beyond the looks at the policy version. There is one look a second, however many requests:
 * policy-versions.int.spec.ts. Here it only matters that not each request looks.
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

it('GET /threads/{id} sends one query, find-thread', async () => {
  expect(await sentFor(50, `/threads/${threadId}`)).toEqual(Array(50).fill('find-thread'));
});

it('checking the access of an open stream again sends no query', async () => {
  sent.length = 0;
  const headers = { authorization: `Bearer ${api.token}` };
  const stream = await fetch(`${api.url}/threads/${threadId}/events/stream`, { headers });
  // Each second all streams are asked about.
  await eventually(() => looks() >= 3, { what: 'two seconds have passed' });
  await stream.body?.cancel();
  const ofHub = new Set(['find-thread', 'read-log-page', 'read-moved-threads']);
  expect(others().filter((statement) => !ofHub.has(statement))).toEqual([]);
  expect(others()).toContain('find-thread');
});
