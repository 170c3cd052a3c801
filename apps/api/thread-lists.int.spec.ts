import type { ThreadSummary } from '#contract';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL.

let api: ApiUnderTest;

beforeAll(async () => {
  api = await ApiUnderTest.start();
});

afterAll(() => api.stop());

type Page = { threads: ThreadSummary[]; nextCursor: string | null };

async function list(agentId: string, query = '', token = api.token): Promise<Page> {
  const { status, json } = await api.get(`/agents/${agentId}/threads${query}`, { token });
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`);
  return json as unknown as Page;
}

const idsOf = ({ threads }: Page) => threads.map(({ id }) => id);

async function make(agentId: string, count: number, token = api.token): Promise<string[]> {
  const made: string[] = [];
  for (let i = 0; i < count; i++) made.unshift(await api.newThread({ agentId, token }));
  return made;
}

/** All pages; `between` happens after each. */
async function readPages(agentId: string, limit: number, between: () => Promise<unknown> = async () => undefined) {
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Page = await list(agentId, `?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    ids.push(...idsOf(page));
    cursor = page.nextCursor;
    await between();
  }
  return ids;
}

describe('the list of Threads', () => {
  test('of a service token has those that it created', async () => {
    const agentId = await api.newAgent();
    const wanted = { kind: 'service' as const, name: 'svc', organizationId: api.organizationId, agentIds: [agentId] };
    const { token } = await api.access.mintToken(wanted);
    const made = await make(agentId, 2, token);
    await make(agentId, 1);
    expect(idsOf(await list(agentId, '', token))).toEqual(made);
    expect(idsOf(await list(agentId, '?userId=u1', token))).toEqual(made);
  });

  test.each([1, 2, 3, 7, 100])('in pages of %d is the same', async (limit) => {
    const agentId = await api.newAgent();
    const made = await make(agentId, 7);
    expect(await readPages(agentId, limit)).toEqual(made);
  });

  test.each(['limit=0', 'limit=101', 'archived=maybe', 'status=idle', 'cursor=abc', 'userId=', 'cursor='])(
    'refuses %s',
    async (query) => {
      expect((await api.get(`/agents/${api.agentId}/threads?${query}`)).status).toBe(400);
    },
  );
});

describe('archiving', () => {
  test.each([
    ['no body and no type', {}],
    ['a type and no body', { headers: { 'content-type': 'application/json' } }],
  ])('takes %s', async (_, call) => {
    const threadId = await api.newThread();
    expect((await api.post(`/threads/${threadId}/archive`, call)).status).toBe(200);
  });
});

describe('budgets', () => {
  test('less in a batch of events, and in a message, where that is set', async () => {
    const small = await ApiUnderTest.start({ settings: { EVENTS_PER_BATCH: 1, MESSAGE_TEXT_LIMIT: 3 } });
    try {
      const threadId = await small.newThread();
      const say = (...texts: string[]) => {
        const events = texts.map((text) => ({ type: 'user_message', text }));
        return small.post(`/threads/${threadId}/events`, { body: { events } });
      };
      expect((await say('🐟🐟🐟🐟')).status).toBe(400);
      expect((await say('a', 'b')).status).toBe(400);
      expect((await say('🐟🐟🐟')).status).toBe(200);
    } finally {
      await small.stop();
    }
  });
});
