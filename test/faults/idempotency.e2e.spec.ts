import { Client } from 'pg';
import { eventually, nightTest } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import {
  createThreads,
  expectMostlyOk,
  expectOneEffectEach,
  messageOf,
  planFaults,
  type Load,
} from '../support/keyed-creates.ts';
import { KeyedClient, type KeyedRequest, type Sent } from '../support/keyed-client.ts';
import { Pod } from '../support/pod.ts';
import { freshSeed, seededRandom } from '../support/random.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

const CREATES = isLong ? 1_000 : 120;
const KILLED = isLong ? 30 : 3;
const LOST = isLong ? 100 : 6;
/** Seeds that once failed. */
const KEPT: number[] = [];

const unlimited = { RATE_LIMIT_PER_MINUTE: '1000000000' };

describe('creates that are sent three times each, over two api processes', () => {
  let system: System;
  let pods: Pod[];
  let load: Load;

  beforeEach(async () => {
    system = await startSystem({ env: unlimited });
    [pods] = await Promise.all([Promise.all([Pod.start(system), Pod.start(system)]), system.startWorker()]);
    const client = new KeyedClient(pods.map((pod) => () => pod.caller));
    load = {
      pods,
      client,
      database: system.database,
      request: (i) => createRequest(system, `load-${i}.`, messageOf(i)),
    };
  }, 120_000);

  afterEach(async () => {
    await Promise.all(pods.map((pod) => pod.close()));
    await system.stop();
  });

  nightTest(
    `${CREATES} of them are ${CREATES} Threads`,
    async () => {
      await createThreads(load, 0, CREATES);
      await expectOneEffectEach(load, CREATES);
      expectMostlyOk(load, 'without faults');
      expect(load.client.requests.filter(({ outcome }) => outcome === 'failed' || outcome === 'unknown')).toEqual([]);
    },
    upTo(180_000),
  );

  test.each([...KEPT, freshSeed()])(
    `${CREATES} of them are ${CREATES} Threads, with processes killed before, between and after COMMIT and answer (F3, seed %d)`,
    async (seed) => {
      const random = seededRandom(seed, 'creates with processes killed');
      load.faults = planFaults(random, CREATES, KILLED, LOST);
      const batch = Math.floor(CREATES / KILLED);
      for (let from = 0; from < CREATES; from += batch) {
        await createThreads(load, from, Math.min(batch, CREATES - from));
      }
      await expectOneEffectEach(load, CREATES);
      expectMostlyOk(load, 'F3');
      expect(pods.flatMap(({ outages }) => outages)).toHaveLength(KILLED);
    },
    upTo(180_000),
  );
});

describe('a key, over two api processes', () => {
  let system: System;
  let pods: Pod[];
  let client: KeyedClient;

  beforeAll(async () => {
    system = await startSystem({ env: unlimited });
    pods = await Promise.all([Pod.start(system), Pod.start(system)]);
    client = new KeyedClient(pods.map((pod) => () => pod.caller));
  }, 120_000);

  afterAll(async () => {
    await expectHealthy(system.database);
    await Promise.all(pods.map((pod) => pod.close()));
    await system.stop();
  });

  let keys = 0;
  const newKey = (): string => `key-${++keys}.`;
  const create = (key = newKey(), text = 'hi'): KeyedRequest => createRequest(system, key, text);

  /** How many rows there are in all tables that requests write. */
  async function rowCounts(): Promise<unknown> {
    const tables = ['streams', 'events', 'thread_summaries', 'run_summaries', 'run_work', 'idempotency_keys'];
    const counts = tables.map((table) => `(select count(*)::integer from ${table}) as ${table}`);
    return (await system.database.pool.query(`select ${counts.join(', ')}`)).rows[0];
  }

  /** Sends to each pod; nothing is stored. */
  async function expectEach(request: KeyedRequest, expected: Partial<Sent>): Promise<void> {
    const before = await rowCounts();
    for (const pod of [0, 1]) expect(await client.send(pod, request)).toMatchObject(expected);
    expect(await rowCounts()).toEqual(before);
  }

  const inProgress = { outcome: 'busy', status: 409 } as const;
  const replayOf = ({ status, text }: Sent) => ({ outcome: 'ok', status, text, replayed: true }) as const;

  async function tokenId(): Promise<string> {
    const { rows } = await system.database.pool.query<{ id: string }>("select id from tokens where name = 'e2e'");
    return rows[0]!.id;
  }

  /** A transaction of the test's own, on a connection of its own. */
  async function withTransaction(work: (client: Client) => Promise<void>): Promise<void> {
    const open = new Client({ connectionString: system.databaseUrl });
    await open.connect();
    try {
      await open.query('begin');
      await work(open);
    } finally {
      await open.end();
    }
  }

  test.each([
    ['the statement ends with its connection: nothing was done, and the key is free', true],
    ['the statement commits although nobody hears of it: the answer is there', false],
  ])(
    'a process is killed before COMMIT, %s (F3)',
    async (_, isEnded) => {
      const request = create();
      const before = await rowCounts();
      await withTransaction(async (open) => {
        // The append does all its work and then waits for us to say whether the key is taken.
        await open.query(
          `insert into idempotency_keys (token_id, key, fingerprint, status, body) values ($1, $2, '', 201, '')`,
          [await tokenId(), request.key],
        );
        const lost = client.send(0, request);
        const backend = await eventually(findWaiting, { what: 'the append waits' });
        pods[0]!.kill();
        expect((await lost).outcome).toBe('unknown');
        expect(await client.send(1, request)).toMatchObject(inProgress);
        expect(await rowCounts()).toEqual(before);
        if (isEnded) {
          await system.database.pool.query('select pg_terminate_backend($1)', [backend]);
          await eventually(async () => (await findWaiting()) === null, { what: 'the append is gone' });
        }
        await open.query('rollback');
      });
      const answer = await client.call(1, request);
      expect([answer.status, answer.replayed]).toEqual([201, !isEnded]);
      await pods[0]!.isUp();
      await expectEach(request, replayOf(answer));
      const { rows } = await system.database.pool.query(`select count(*)::integer as threads from streams`);
      expect(rows).toEqual([{ threads: (before as { streams: number }).streams + 1 }]);
    },
    60_000,
  );

  async function findWaiting(): Promise<number | null> {
    const { rows } = await system.database.pool.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '-- Appends to one stream%'`,
    );
    return rows[0]?.pid ?? null;
  }
});

function createRequest({ agentId }: Pick<System, 'agentId'>, key: string, text: string): KeyedRequest {
  const input = { type: 'user.message', content: [{ type: 'text', text }] };
  return { key, path: `/agents/${agentId}/threads`, body: { userId: 'tester', input } };
}
