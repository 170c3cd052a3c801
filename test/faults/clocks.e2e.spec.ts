import { setTimeout as last } from 'node:timers/promises';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { describeWithRedis, eventually, redisUrl, reportLatency, type SpawnedNode } from '#testing';
import { allRunsCompleted, expectHealthy, expectStored, expectWholeLog } from '../support/checks.ts';
import {
  createAcknowledged,
  createThread,
  follow,
  getThread,
  inParallel,
  readLog,
  readStream,
  send,
  waitForEntry,
  type Acknowledged,
  type Caller,
  type LogEntry,
} from '../support/client.ts';
import { SettableClock } from '../support/settable-clock.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

/**
 * F9. The clocks of two api and two worker processes are twenty minutes apart, and are put back by an hour while they work;
 * the database keeps the time. Everything else of them is as always: what a machine's clock is set to, timers do not feel.
 */

const MINUTE_MS = 60_000;
const AHEAD_MS = 10 * MINUTE_MS;
const STEP_MS = -60 * MINUTE_MS;
/** Shorter than all steps together, and than a Run that works through them. */
const LEASE_MS = 4_000;
const KEEPALIVE_MS = 500;
/** Of a Run that works through all steps: one every 50 ms. */
const PIECES = isLong ? 1_200 : 160;
const THREADS = isLong ? 2_000 : 60;

const backends = [
  { backend: 'Redis', describeIt: describeWithRedis, queueUrl: () => redisUrl().url },
  { backend: 'PostgreSQL', describeIt: isLong ? describe : describe.skip, queueUrl: () => undefined },
];

for (const { backend, describeIt, queueUrl } of backends) {
  describeIt(`processes whose clocks are wrong, jobs on ${backend}`, () => {
    let system: System;
    let callers: Caller[];
    let workers: SpawnedNode[];
    /** Of the apis and then of the workers: one ahead and one behind each. */
    let clocks: SettableClock[];

    beforeAll(async () => {
      const url = queueUrl();
      const env = {
        LEASE_MS: String(LEASE_MS),
        STREAM_KEEPALIVE_MS: String(KEEPALIVE_MS),
        // Its windows are looked at; nobody is to come to their end.
        RATE_LIMIT_PER_MINUTE: '1000000',
      };
      system = await startSystem({ env, ...(url === undefined ? {} : { queueUrl: url }) });
      clocks = await Promise.all([AHEAD_MS, -AHEAD_MS, -AHEAD_MS, AHEAD_MS].map((ms) => SettableClock.make(ms)));
      const [one, other] = clocks.slice(0, 2).map((clock) => system.startApi(clock.env));
      const starting = clocks.slice(2).map((clock) => system.startWorker(clock.env));
      callers = [(await one!).caller, (await other!).caller];
      workers = await Promise.all(starting);
    }, 120_000);

    afterAll(async () => {
      await expectHealthy(system.database);
      await system.stop();
      await Promise.all(clocks.map((clock) => clock.remove()));
    });

    const callerOf = (i: number): Caller => callers[i % callers.length]!;

    /** One after the other, so that for a while some are put back and some are not. */
    async function putBackClocks(): Promise<void> {
      for (const clock of clocks) {
        await clock.set(clock.offsetMs + STEP_MS);
        acknowledged.push(await createAcknowledged(callerOf(0), 'between two steps'));
        await last(LEASE_MS / 3);
      }
    }

    let acknowledged: Acknowledged[];
    beforeEach(() => (acknowledged = []));

    test(
      'no lease is lost, no Run doubled, and every reader sees the log once and in order',
      async () => {
        const key = `clock-${backend}-${acknowledged.length}`;
        const keyed = await createThread(callerOf(0), 'keyed', key);
        acknowledged.push({ threadId: keyed.body.thread.id, runId: keyed.body.run!.id, text: 'keyed' });
        const silence = listenForSilence(callerOf(0), keyed.body.thread.id);
        const long = await inParallel(4, 4, (i) =>
          createAcknowledged(callerOf(i), `/pieces ${PIECES} /pause 50 through all steps ${i}`),
        );
        acknowledged.push(...long);
        const seen = long.map(({ threadId }) => follow(callers, threadId));
        let isOver = false;
        const steps = putBackClocks().finally(() => (isOver = true));
        for (let i = 0; !isOver || acknowledged.length < THREADS; i += 4) {
          await inParallel(4, 4, async (n) => {
            const thread = await createAcknowledged(callerOf(i + n), `/tool beside ${i + n}`);
            acknowledged.push(thread);
            if (n === 0)
              expect(await follow(callers, thread.threadId)).toEqual(await readLog(callerOf(i), thread.threadId));
          });
        }
        await steps;
        await expectEverythingDone(long, await Promise.all(seen));

        const again = await createThread(callerOf(1), 'keyed', key);
        expect(again).toMatchObject({ status: 201, body: keyed.body });
        expect(again.headers.get('idempotency-replayed')).toBe('true');
        reportLatency(4 * KEEPALIVE_MS, await silence.longestMs(), 'a stream at rest was silent for');
      },
      upTo(90_000),
    );

    async function expectEverythingDone(long: Acknowledged[], seen: LogEntry[][]): Promise<void> {
      await allRunsCompleted(system.database, acknowledged.length, 30_000);
      await expectStored(system.database, acknowledged);
      for (const [i, { threadId, runId }] of long.entries()) {
        expect(seen[i]).toEqual(await readLog(callerOf(i), threadId));
        const numbers = Array.from({ length: PIECES }, (_, n) => ` ${n + 1}`).join('');
        expectWholeLog(seen[i]!, runId, `You said: through all steps ${i}${numbers}`);
      }
      // Every Run by its first claim, and both workers had some.
      const { rows } = await system.database.pool.query<{ attempts: number; holders: number; ends: string[] }>(
        `select max(attempt) as attempts, count(distinct data->>'holder')::integer as holders,
                (select array_agg(distinct type) from events
                 where type in ('run.requeued', 'run.expired', 'run.failed', 'run.cancelled')) as ends
         from events where type = 'run.claimed'`,
      );
      expect(rows).toEqual([{ attempts: 1, holders: 2, ends: null }]);
      for (const worker of workers)
        expect(worker.output()).not.toMatch(/"msg":"(lease (renewal|not|thread)|process stalled)/);
    }

    test(
      'tokens, waiting for a person and windows of the rate limit last as long as the database says',
      async () => {
        const waits = await newWaitingThread(3_000);
        const token = await newToken(4_000);
        const stream = readStream({ ...callerOf(1), token: token.text }, `/threads/${token.threadId}/events/stream`);
        await putBackClocks();
        const asked = () =>
          inParallel(
            2,
            2,
            async (i) =>
              (await send({ ...callerOf(i), token: token.text }, 'GET', `/threads/${token.threadId}`)).status,
          );
        for (let statuses = [200]; statuses[0] === 200;) {
          const before = await token.leftMs();
          statuses = await asked();
          const after = await token.leftMs();
          // It is over early rather than late, by as long as it takes to ask the database.
          if (statuses.includes(401)) reportLatency(250, after, 'the token was over before its end by');
          if (before < 0) expect(statuses).toEqual([401, 401]);
        }
        expect((await stream).at(-1)).toMatchObject({ event: 'thread.error' });
        const lateMs = -(await token.leftMs());

        expect(await waits.endedAfterMs()).toBeGreaterThanOrEqual(3_000);

        for (const caller of callers) {
          const { headers } = await send(caller, 'GET', `/threads/${token.threadId}`);
          expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(0);
          expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60);
        }
        reportLatency(5_000, lateMs, 'the token and its stream were over, beyond its end, after');
        reportLatency(5_000, await waits.endedAfterMs(), 'the Run expired after');
      },
      upTo(60_000),
    );

    const ask = async <Row>(text: string, ...values: unknown[]): Promise<Row> =>
      (await system.database.pool.query(text, values)).rows[0] as Row;

    /** A token of the same person, good for so long by the database's clock. */
    async function newToken(goodForMs: number) {
      const { person, thread } = await ask<{ person: string; thread: string }>(
        `select owner_person_id as person, thread_id as thread from thread_summaries limit 1`,
      );
      const { at } = await ask<{ at: string }>(
        `select clock_timestamp() + $1::integer * interval '1 ms' as at`,
        goodForMs,
      );
      const access = new AccessStore(system.database.pool);
      const expiresAt = new Date(at);
      const { token } = await access.mintToken({ kind: 'person', personId: person, name: 'short', expiresAt });
      const leftMs = async (): Promise<number> =>
        (
          await ask<{ ms: number }>(
            `select extract(epoch from $1::timestamptz - clock_timestamp())::float8 * 1000 as ms`,
            at,
          )
        ).ms;
      return { text: token, threadId: thread, leftMs };
    }

    /** A Thread whose Run asks a person, who may take so long. */
    async function newWaitingThread(waitMs: number) {
      const { organization } = await ask<{ organization: string }>(
        'select organization_id as organization from agents',
      );
      const manifest = { name: 'impatient', harness: { name: 'echo' }, limits: { waitMs } };
      const agentId = await createAgent(system.database.pool, { organizationId: organization, manifest });
      await publishAgentVersion(system.database.pool, agentId, manifest);
      const started = performance.now();
      const { threadId } = await createAcknowledged({ ...callerOf(0), agentId }, '/confirm');
      await waitForEntry(callerOf(0), threadId, 'tool.confirmation.required');
      const ended = eventually(async () => (await getThread(callerOf(0), threadId)).body.run?.status === 'expired', {
        what: 'the Run has expired',
        timeoutMs: 20_000,
      }).then(() => performance.now() - started);
      ended.catch(() => undefined);
      return { endedAfterMs: () => ended };
    }
  });
}

/** Reads a stream of a Thread at rest: the longest time in which nothing came. */
function listenForSilence({ baseUrl, token }: Caller, threadId: string) {
  const abort = new AbortController();
  let longest = 0;
  const reading = (async () => {
    const headers = { authorization: `Bearer ${token}` };
    const { body } = await fetch(`${baseUrl}/threads/${threadId}/events/stream`, { headers, signal: abort.signal });
    let heardAt = performance.now();
    for await (const _ of body!) {
      longest = Math.max(longest, performance.now() - heardAt);
      heardAt = performance.now();
    }
  })().catch(() => undefined);
  return {
    longestMs: async (): Promise<number> => {
      abort.abort();
      await reading;
      return longest;
    },
  };
}
