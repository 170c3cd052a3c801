import { eventually } from '#testing';
import type { Reply } from './client.ts';
import { interrupt, message, refusal, userMessage, type World } from './world.ts';

/** The Idempotency-Key (docs/spec/agent-threads-api.md#endpoints, docs/spec/decisions.md#idempotency). */
export function describeIdempotency(world: World): void {
  describe('Idempotency-Key', () => {
    let count = 0;
    const newKey = (): string => `${world.backend}-${++count}`;
    const create = (key: string, body: unknown = { userId: 'u', input: message('once') }, client = world.client) =>
      client.post(`/agents/${world.agentId}/threads`, body, { headers: { 'idempotency-key': key } });
    const expectReplay = (first: Reply, again: Reply): void => {
      expect([again.status, again.text]).toEqual([first.status, first.text]);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
    };

    test('optional, a string of at most 128 characters', async () => {
      expect((await create('k'.repeat(128))).status).toBe(201);
      expect(refusal(await create('k'.repeat(129)))).toEqual([400, 'invalid_request']);
      expect((await world.create()).headers.get('idempotency-replayed')).toBeNull();
    });

    test('the same key with the same request returns the original response; byte for byte, marked', async () => {
      const key = newKey();
      const first = await create(key);
      expect(first.headers.get('idempotency-replayed')).toBeNull();
      await world.ended(first.json.thread.id);
      expectReplay(first, await create(key));
      expect((await world.client.get(`/threads/${first.json.thread.id}/runs`)).json.runs).toHaveLength(1);
    });

    test('parsed body, whatever its key order or white space; ids in either case', async () => {
      const key = newKey();
      const headers = { 'idempotency-key': key, 'content-type': 'application/json' };
      const path = `/agents/${world.agentId}/threads`;
      const first = await world.client.post(path, { userId: 'u', input: message('once') }, { headers });
      const body = ' { "input":\n{"content":[{"text":"once","type":"text"}],"type":"user.message"}, "userId" : "u" } ';
      expectReplay(first, await world.client.post(path, undefined, { body, headers }));
      const lower = `/agents/${world.agentId.toLowerCase()}/threads`;
      expectReplay(first, await world.client.post(lower, undefined, { body, headers }));
    });

    test('the key for a different request is 409 idempotency_conflict: another body, agent or route', async () => {
      const key = newKey();
      const { json } = await create(key);
      const headers = { 'idempotency-key': key };
      const agentId = await world.newAgent();
      const others = [
        await create(key, { userId: 'u', input: message('twice') }),
        await create(key, { userId: 'u' }),
        await world.client.post(`/agents/${agentId}/threads`, { userId: 'u', input: message('once') }, { headers }),
        await world.client.post(`/threads/${json.thread.id}/events`, { events: [userMessage('once')] }, { headers }),
        await world.upload('once', 'once', { headers }),
      ];
      for (const reply of others) {
        expect([...refusal(reply), reply.headers.get('retry-after')]).toEqual([409, 'idempotency_conflict', null]);
      }
    });

    test('unique per token and key', async () => {
      const key = newKey();
      const { token } = await world.mintFor(world.owner.personId);
      const first = await create(key);
      const second = await create(key, undefined, world.as(token));
      expect(second.headers.get('idempotency-replayed')).toBeNull();
      expect(second.json.thread.id).not.toBe(first.json.thread.id);
    });

    test('while the original request is processing: 409, with Retry-After 1; then the original response', async () => {
      const key = newKey();
      const blocker = await world.pool.connect();
      try {
        await blocker.query('begin');
        // Somebody else's row under the same key, not committed: the original request waits for it in its own commit.
        await blocker.query(
          `insert into idempotency_keys (token_id, key, fingerprint, status, body) values ($1, $2, '', 201, '')`,
          [world.owner.tokenId, key],
        );
        const both = [create(key), create(key)];
        const busy = await Promise.race(both);
        expect(refusal(busy)).toEqual([409, 'idempotency_conflict']);
        expect(busy.headers.get('retry-after')).toBe('1');
        await blocker.query('rollback');
        const first = (await Promise.all(both)).find((reply) => reply !== busy)!;
        expect(first.status).toBe(201);
        expectReplay(first, await create(key));
      } finally {
        blocker.release(true);
      }
    });

    test('many at once: one effect; every answer is that one or 409 with Retry-After', async () => {
      const key = newKey();
      const replies = await Promise.all(Array.from({ length: 12 }, () => create(key)));
      const done = replies.filter(({ status }) => status === 201);
      expect(new Set(done.map(({ text }) => text)).size).toBe(1);
      for (const reply of replies.filter(({ status }) => status !== 201)) {
        expect([...refusal(reply), reply.headers.get('retry-after')]).toEqual([409, 'idempotency_conflict', '1']);
      }
    });

    test('2xx are stored, errors are not; a refused request stores no key', async () => {
      const { thread } = await world.waitingThread();
      const headers = { 'idempotency-key': newKey() };
      const send = () =>
        world.client.post(`/threads/${thread.id}/events`, { events: [userMessage('hi')] }, { headers });
      const before = await world.rowCounts();
      expect(refusal(await send())).toEqual([409, 'idempotency_conflict']);
      expect(await world.rowCounts()).toEqual(before);
      await world.send(thread.id, interrupt());
      const sent = await send();
      expect([sent.status, sent.headers.get('idempotency-replayed')]).toEqual([200, null]);
      expectReplay(sent, await send());
    });

    test('a key that was used for what was invalid is free', async () => {
      const key = newKey();
      expect((await create(key, { userId: '' })).status).toBe(400);
      expect((await create(key)).status).toBe(201);
    });

    test('send-events: a replay is the original answer, not the state of now, even where it would be refused now', async () => {
      const { id } = await world.newThread();
      const headers = { 'idempotency-key': newKey() };
      const body = { events: [userMessage('/confirm', { requestId: 'r' })] };
      const first = await world.client.post(`/threads/${id}/events`, body, { headers });
      await world.entry(id, 'tool.confirmation.required');
      const again = await world.client.post(`/threads/${id}/events`, body, { headers });
      expectReplay(first, again);
      expect(again.json.events[0]!.run.status).toBe('queued');
      const upper = await world.client.post(`/threads/${id.toLowerCase()}/events`, body, { headers });
      expectReplay(first, upper);
    });

    test('an upload: name, type and SHA-256', async () => {
      const headers = { 'idempotency-key': newKey() };
      const first = await world.upload('a.txt', 'same bytes', { headers });
      expect(first.status).toBe(201);
      expectReplay(first, await world.upload('a.txt', 'same bytes', { headers }));
      for (const other of [
        await world.upload('b.txt', 'same bytes', { headers }),
        await world.upload('a.txt', 'other bytes', { headers }),
      ]) {
        expect(refusal(other)).toEqual([409, 'idempotency_conflict']);
      }
      await eventually(async () => (await world.blobsWith('other bytes')) === 0, { what: 'refused bytes are gone' });
      await world.client.delete(`/files/${first.json.file.id}`);
      expect(refusal(await world.upload('a.txt', 'same bytes', { headers }))).toEqual([404, 'not_found']);
    });

    test('kept 24 h, then purged', async () => {
      const key = newKey();
      const first = await create(key);
      const age = (hours: number) =>
        world.pool.query(`update idempotency_keys set created_at = now() - $2 * interval '1 hour' where key = $1`, [
          key,
          hours,
        ]);
      await age(23);
      expectReplay(first, await create(key));
      await age(25);
      const count = async () =>
        (await world.pool.query('select 1 from idempotency_keys where key = $1', [key])).rowCount === 0;
      await eventually(count, { what: 'the key is purged', timeoutMs: 10_000 });
      const second = await create(key);
      expect([second.status, second.json.thread.id !== first.json.thread.id]).toEqual([201, true]);
    });

    test('a replay passes the access checks', async () => {
      const person = await world.newPerson();
      const client = world.as(person.token);
      const key = newKey();
      expect((await create(key, undefined, client)).status).toBe(201);
      await world.pool.query('delete from memberships where person_id = $1', [person.personId]);
      await eventually(async () => (await create(key, undefined, client)).status === 403, {
        what: 'access is withdrawn',
      });
      // Access comes before idempotency: a key that conflicts is not told of.
      expect(refusal(await create(key, { userId: 'other' }, client))).toEqual([403, 'forbidden']);
    });

    test('after its Thread is deleted: 404, never a second Thread', async () => {
      const key = newKey();
      const { json } = await create(key);
      await world.client.delete(`/threads/${json.thread.id}`);
      for (const _ of [1, 2]) expect(refusal(await create(key))).toEqual([404, 'not_found']);
    });
  });
}
