import { AccessStore } from '#access';
import { eventually, reportFigure } from '#testing';
import { inParallel, postEvents, send, type Caller, type LogEntry, type ThreadAnswer } from '../support/client.ts';
import { LeanReader } from '../support/lean-reader.ts';
import { KB, ProcessGauge } from '../support/process-gauge.ts';
import { startSystem, upTo, type System } from '../support/system.ts';

const STREAMS = 1_000;
const CONNECTIONS = 32;
/** Measured: 11 KB in use. */
const KB_A_STREAM = 40;

/** Unset, because the test is about the defaults. */
const DEFAULT_LIMITS = {
  RATE_LIMIT_PER_MINUTE: '',
  STREAMS_PER_TOKEN: '',
  STREAMS_PER_THREAD: '',
  STREAMS_PER_PROCESS: '',
};

interface Follower {
  threadId: string;
  reader: LeanReader;
  seen: LogEntry[];
}

describe(`${STREAMS} streams of one service token on one api process, with the default limits`, () => {
  let system: System;
  let caller: Caller;
  let gauge: ProcessGauge;
  let followers: Follower[] = [];

  beforeAll(async () => {
    system = await startSystem({ env: DEFAULT_LIMITS });
    const { pool } = system.database;
    const { agentId } = system;
    const { rows } = await pool.query<{ id: string }>('select organization_id as id from agents');
    const service = { kind: 'service', organizationId: rows[0]!.id, agentIds: [agentId], name: 'back end' } as const;
    const { token } = await new AccessStore(pool).mintToken(service);
    const api = await system.startApi(ProcessGauge.env);
    caller = { ...api.caller, token };
    gauge = new ProcessGauge(api.process);
  }, 120_000);

  afterAll(async () => {
    followers.forEach(({ reader }) => reader.leave());
    await system.stop();
  });

  /** Creates a Thread of one of the back end's users. */
  async function newFollower(i: number): Promise<Follower> {
    const path = `/agents/${caller.agentId}/threads`;
    const { status, body } = await send<ThreadAnswer>(caller, 'POST', path, { userId: `user ${i}` });
    expect(status).toBe(201);
    const threadId = body.thread.id;
    const seen: LogEntry[] = [];
    return { threadId, seen, reader: new LeanReader(threadId, (_, data) => seen.push(JSON.parse(data) as LogEntry)) };
  }

  test(
    'all open, each receives only the event of its Thread, and each takes little memory',
    async () => {
      followers = await inParallel(STREAMS, CONNECTIONS, newFollower);
      const before = await gauge.measure();
      const openedAt = performance.now();
      await inParallel(STREAMS, CONNECTIONS, (i) => followers[i]!.reader.visit(caller));
      const openedMs = performance.now() - openedAt;
      const after = await gauge.measure();
      expect(after.connections).toBeGreaterThanOrEqual(STREAMS);

      await inParallel(STREAMS, CONNECTIONS, async (i) => {
        const text = `message ${i}`;
        const answer = await postEvents(caller, followers[i]!.threadId, { type: 'user_message', text });
        expect(answer.status).toBe(200);
        // The request budget of one service token must suffice for all users.
        expect(answer.headers.get('ratelimit-limit')).toBe('6000');
      });
      const texts = () =>
        followers.map(({ seen }) => seen.filter(({ type }) => type === 'user.message').map(({ content }) => content));
      await eventually(() => texts().every(({ length }) => length > 0), { what: 'each stream has its message' });
      expect(texts()).toEqual(followers.map((_, i) => [`message ${i}`]));

      const kbAStream = (after.live - before.live) / KB / STREAMS;
      const residentKb = (after.bytes - before.bytes) / KB / STREAMS;
      reportFigure(
        `${STREAMS} streams of one service token opened in ${Math.round(openedMs)} ms, ${kbAStream.toFixed(1)} KB each, ` +
          `${residentKb.toFixed(1)} KB resident`,
      );
      expect(kbAStream).toBeLessThan(KB_A_STREAM);
    },
    upTo(120_000),
  );
});
