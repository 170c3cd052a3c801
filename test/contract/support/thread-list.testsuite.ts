import type { Thread } from './client.ts';
import { refusal, userMessage, type World } from './world.ts';

/** GET /agents/{agentId}/threads (docs/spec/decisions.md#routes). Each test lists an Agent of its own. */
export function describeThreadList(world: World): void {
  describe('GET /agents/{agentId}/threads', () => {
    let agentId: string;
    beforeEach(async () => {
      agentId = await world.newAgent();
    });

    const list = async (query = '', client = world.client) => {
      const { status, json } = await client.get(`/agents/${agentId}/threads${query}`);
      expect(status).toBe(200);
      return json;
    };
    const listed = async (query?: string, client = world.client) =>
      (await list(query, client)).threads.map(({ id }) => id);
    /** The ids of all pages, none of which may be empty. */
    const listedInPages = async (limit: number): Promise<string[]> => {
      const ids: string[] = [];
      for (let query = `?limit=${limit}`, more = true; more;) {
        const { threads, nextCursor } = await list(query);
        expect(threads).not.toEqual([]);
        ids.push(...threads.map(({ id }) => id));
        more = nextCursor !== null;
        query = `?limit=${limit}&cursor=${encodeURIComponent(nextCursor ?? '')}`;
      }
      return ids;
    };
    const make = async (count: number): Promise<string[]> => {
      const ids: string[] = [];
      for (let i = 0; i < count; i++) ids.push((await world.newThread({ agentId })).id);
      return ids;
    };

    test('200 {threads, nextCursor}: the summaries, null at the end; an empty list has both', async () => {
      expect(await list()).toEqual({ threads: [], nextCursor: null });
      const { thread } = await world.endedThread({ agentId });
      expect(await list()).toEqual({ threads: [thread], nextCursor: null });
    });

    test('lists Threads visible to the caller, and no others', async () => {
      const other = await world.newPerson();
      const service = await world.mintService([agentId]);
      const [mine] = await make(1);
      const theirs = await world.newThread({ agentId, client: world.as(other.token) });
      const its = await world.newThread({ agentId, client: world.as(service.token) });
      expect(await listed()).toEqual([mine]);
      expect(await listed('', world.as(other.token))).toEqual([theirs.id]);
      for (const query of ['', '?userId=user-1']) {
        expect(await listed(query, world.as(service.token))).toEqual([its.id]);
      }
    });

    test('a person sees the same with each of their tokens', async () => {
      const [mine] = await make(1);
      const { token } = await world.mintFor(world.owner.personId);
      expect(await listed('', world.as(token))).toEqual([mine]);
    });

    test('newest updated_at first, then id', async () => {
      const [first, second, third] = await make(3);
      expect(await listed()).toEqual([third, second, first]);
      await world.send(first!, userMessage('hi'));
      await world.ended(first!);
      expect(await listed()).toEqual([first, third, second]);
      const { threads } = await list();
      const times = threads.map(({ updated_at }) => Date.parse(updated_at));
      expect(times).toEqual(times.toSorted((a, b) => b - a));
    });

    test('of the same updated_at: by id, over the pages too', async () => {
      const ids = await make(5);
      const setTime = (time: string) =>
        world.pool.query(`update thread_summaries set updated_at = ${time} where agent_id = $1`, [agentId]);
      await setTime('to_timestamp(0)');
      const pages = await listedInPages(2);
      await setTime('created_at');
      expect([ids.toSorted(), ids.toSorted().reverse()]).toContainEqual(pages);
    });

    test('limit 1..100, default 100', async () => {
      const makeAll = await Promise.all(Array.from({ length: 101 }, () => world.newThread({ agentId })));
      const page = await list();
      expect(page.threads).toHaveLength(100);
      expect((await list('?limit=100')).threads).toEqual(page.threads);
      const rest = await list(`?cursor=${encodeURIComponent(page.nextCursor!)}`);
      expect([rest.threads.length, rest.nextCursor]).toEqual([1, null]);
      expect(new Set([...page.threads, ...rest.threads].map(({ id }) => id)).size).toBe(makeAll.length);
      expect((await list('?limit=1')).threads).toHaveLength(1);
      for (const limit of ['0', '101', '-1', '1.5', 'all', '']) {
        const reply = await world.client.get(`/agents/${agentId}/threads?limit=${limit}`);
        expect([limit, ...refusal(reply)]).toEqual([limit, 400, 'invalid_request']);
      }
    });

    test('cursor: one that was never given is 400 invalid_request', async () => {
      for (const cursor of ['', 'nonsense', '%00', 'a'.repeat(5_000)]) {
        const reply = await world.client.get(`/agents/${agentId}/threads?cursor=${cursor}`);
        expect([cursor, ...refusal(reply)]).toEqual([cursor, 400, 'invalid_request']);
      }
    });

    test.each([1, 2, 3, 4])(
      'pages of %d have the same Threads; nextCursor is null when the last page is full',
      async (limit) => {
        const ids = await make(4);
        expect(await listedInPages(limit)).toEqual(ids.toReversed());
      },
    );

    test('a Thread that does not change while one pages is neither skipped nor doubled', async () => {
      const ids = await make(9);
      const touched = [ids[8]!, ids[4]!, ids[0]!];
      const seen: string[] = [];
      for (let query = '?limit=2', page = 0, more = true; more; page++) {
        const { threads, nextCursor } = await list(query);
        seen.push(...threads.map(({ id }) => id));
        more = nextCursor !== null;
        query = `?limit=2&cursor=${encodeURIComponent(nextCursor ?? '')}`;
        // One that was seen, one that was not, and a new one: all move to the front.
        if (touched[page] !== undefined) await world.client.post(`/threads/${touched[page]}/archive`);
        if (touched[page] !== undefined) await world.client.post(`/threads/${touched[page]}/unarchive`);
        await make(1);
      }
      const unchanged = ids.filter((id) => !touched.includes(id));
      expect(seen.filter((id) => unchanged.includes(id))).toEqual(unchanged.toReversed());
    });

    test('archived: absent or false only active, true only archived, all both', async () => {
      const [active, archived] = await make(2);
      await world.client.post(`/threads/${archived}/archive`);
      expect(await listed()).toEqual([active]);
      expect(await listed('?archived=false')).toEqual([active]);
      expect(await listed('?archived=true')).toEqual([archived]);
      expect(await listed('?archived=all')).toEqual([archived, active]);
      const wrong = await world.client.get(`/agents/${agentId}/threads?archived=maybe`);
      expect(refusal(wrong)).toEqual([400, 'invalid_request']);
    });

    test('status: only Threads of that status', async () => {
      const [idle] = await make(1);
      const { thread: running } = await world.waitingThread({ agentId });
      expect(await listed('?status=IDLE')).toEqual([idle]);
      expect(await listed('?status=RUNNING')).toEqual([running.id]);
      expect(await listed('?status=RESCHEDULING')).toEqual([]);
      expect(await listed('?status=TERMINATED')).toEqual([]);
      const wrong = await world.client.get(`/agents/${agentId}/threads?status=idle`);
      expect(refusal(wrong)).toEqual([400, 'invalid_request']);
    });

    test('userId: only Threads of that user, compared as it stands', async () => {
      const users = ['kim', 'Kim', 'kim ', 'k%m', 'k_m', 'ключ 😀 &=+'];
      const made: Thread[] = [];
      for (const userId of users) made.push(await world.newThread({ agentId, userId }));
      for (const [i, userId] of users.entries()) {
        expect(await listed(`?userId=${encodeURIComponent(userId)}`)).toEqual([made[i]!.id]);
      }
      expect(await listed('?userId=nobody')).toEqual([]);
      for (const userId of ['', 'u'.repeat(256), '%00']) {
        const reply = await world.client.get(`/agents/${agentId}/threads?userId=${userId}`);
        expect([userId, ...refusal(reply)]).toEqual([userId, 400, 'invalid_request']);
      }
    });

    test('filters hold together, and over all pages', async () => {
      for (let i = 0; i < 6; i++) await world.newThread({ agentId, userId: i % 2 === 0 ? 'even' : 'odd' });
      const first = await list('?userId=even&status=IDLE&archived=false&limit=2');
      const cursor = encodeURIComponent(first.nextCursor!);
      const second = await list(`?userId=even&status=IDLE&archived=false&limit=2&cursor=${cursor}`);
      expect([...first.threads, ...second.threads].map(({ userId }) => userId)).toEqual(['even', 'even', 'even']);
      expect(second.nextCursor).toBeNull();
    });

    test('a deleted Thread is in no list', async () => {
      const [kept, gone] = await make(2);
      await world.client.delete(`/threads/${gone}`);
      expect(await listed('?archived=all')).toEqual([kept]);
    });
  });
}
