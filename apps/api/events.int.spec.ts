import { ApiUnderTest } from './api-under-test.testing.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

const message = (text: string, more: object = {}) => ({ type: 'user_message', text, ...more });
const interrupt = (runId?: string | null) => ({ type: 'user_interrupt', ...(runId === undefined ? {} : { runId }) });

const send = (threadId: string, ...events: object[]) => api.post(`/threads/${threadId}/events`, { body: { events } });

/** Expects a refusal with the code and message, and no stored row. */
async function expectRefused(
  reply: () => ReturnType<typeof send>,
  status: number,
  code: string,
  text: string | RegExp,
) {
  const before = await api.rowCounts();
  const { status: actual, json } = await reply();
  expect([actual, json.error.code]).toEqual([status, code]);
  expect(json.error.message).toMatch(text);
  expect(await api.rowCounts()).toEqual(before);
}

it('a Thread gives its Run the limits of the agent’s live version', async () => {
  const agentId = await api.newAgent({}, { kind: 'pet', limits: { queueMs: 5_000, workMs: 7_000 } });
  const threadId = await api.newThread({ text: 'hi', agentId });
  const { rows } = await api.pool.query<{ state: { runs: object[] } }>(
    'select state from streams where thread_id = $1',
    [threadId],
  );
  expect(rows[0]?.state.runs).toMatchObject([
    { agentVersion: 1, limits: { queueMs: 5_000, workMs: 7_000, maxLosses: 3 } },
  ]);
  expect((await api.get(`/threads/${threadId}`)).json.thread).toMatchObject({ kind: 'pet' });
});

describe('a batch', () => {
  it('with 100 events is accepted, and at most 100 Runs wait behind the current one', async () => {
    const agentId = await api.newAgent({}, { whenBusy: 'enqueue' });
    const threadId = await api.newThread({ agentId });
    const { status, json } = await send(threadId, ...Array.from({ length: 100 }, (_, i) => message(`m${i}`)));
    expect(status).toBe(200);
    expect(new Set(json.events.map((result) => result.run.id)).size).toBe(100);
    // The current Run, and 100 that wait behind it.
    expect((await send(threadId, message('one more'))).status).toBe(200);
    await expectRefused(() => send(threadId, message('too many')), 409, 'idempotency_conflict', 'Too many Runs');
  });

  it('is refused by a Thread that is terminated', async () => {
    const threadId = await api.newThread();
    await api.happen(threadId, { type: 'terminate_thread' });
    await expectRefused(() => send(threadId, message('hi')), 409, 'idempotency_conflict', 'terminated');
    expect((await api.get(`/threads/${threadId}`)).json.thread.status).toBe('TERMINATED');
  });
});

describe('GET /threads/{threadId}/events', () => {
  it('ends a window after about 1 MiB, and the next windows have all other entries', async () => {
    const agentId = await api.newAgent({}, { whenBusy: 'enqueue' });
    const large = await api.newThread({ agentId, text: 'x'.repeat(32_000) });
    for (const letter of ['a', 'é', '"']) await send(large, ...Array<object>(10).fill(message(letter.repeat(60_000))));
    const window = async (query: string) => (await api.get(`/threads/${large}/events?limit=1000${query}`)).json;
    const [latest, first] = [await window(''), await window(`&after=${'0'.repeat(26)}`)];
    for (const { events, truncated } of [latest, first]) {
      expect(truncated).toBe(true);
      expect(Buffer.byteLength(JSON.stringify(events))).toBeGreaterThan(200_000);
      expect(Buffer.byteLength(JSON.stringify(events))).toBeLessThan(1_300_000);
    }
    const forth = [...first.events];
    for (let more = true; more;) {
      const { events, truncated } = await window(`&after=${forth.at(-1)!.id}`);
      forth.push(...events);
      more = truncated;
    }
    const back = [...latest.events];
    for (let more = true; more;) {
      const { events, truncated } = await window(`&before=${back[0]!.id}`);
      back.unshift(...events);
      more = truncated;
    }
    expect(forth.filter(({ type }) => type === 'user.message')).toHaveLength(31);
    expect(back).toEqual(forth);
  });

  it('ends a page of Runs after about 1 MiB of final outputs, and the next pages have all other Runs', async () => {
    const agentId = await api.newAgent({}, { whenBusy: 'interrupt' });
    const threadId = await api.newThread({ agentId });
    await send(threadId, ...Array.from({ length: 12 }, (_, i) => message(`m${i}`)), interrupt());
    await api.pool.query(
      `update run_summaries set final_output = jsonb_build_object('text', repeat('"é', 75000), 'warnings', '[]'::jsonb)
       where thread_id = $1`,
      [threadId],
    );
    const page = async (cursor: string) => (await api.get(`/threads/${threadId}/runs?limit=100${cursor}`)).json;
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { runs, nextCursor }: { runs: { id: string }[]; nextCursor: string | null } = await page(cursor);
      expect(Buffer.byteLength(JSON.stringify(runs))).toBeLessThan(1_500_000);
      seen.push(...runs.map(({ id }) => id));
      cursor = nextCursor && `&cursor=${nextCursor}`;
    }
    expect(seen).toHaveLength(12);
    expect(new Set(seen).size).toBe(12);
    expect(seen).toEqual(seen.toSorted().toReversed());
  });
});
