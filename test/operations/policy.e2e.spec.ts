import { setTimeout as last } from 'node:timers/promises';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { CommandHandler, ThreadStore } from '#event-store';
import { newId } from '#platform';
import { eventually, faultProxy } from '#testing';
import { createThread, getThread, postEvents, readStream, send, type Caller, type Frame } from '../support/client.ts';
import { LeanReader } from '../support/lean-reader.ts';
import { operatorOf } from '../support/operator.ts';
import { SpoolCommand } from '../support/spool-command.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

// Two api processes: what is changed is told to neither, and both remember everything that is asked of them.

/** Everywhere, open streams included (docs/spec/decisions.md#tokens). */
const SEEN_WITHIN_MS = 5_000;
/** Many ask at once: more often would keep two cores busy with asking. */
const ASK_AGAIN_MS = 100;

let system: System;
let pods: ApiProcess[];
let access: AccessStore;

beforeAll(async () => {
  system = await startSystem();
  access = new AccessStore(system.database.pool);
  pods = await Promise.all([system.startApi(), system.startApi()]);
}, 120_000);
afterAll(() => system.stop());

const LIMITS = ['--requests-per-minute', '5000', '--streams', '1'];
const operatorEnv = () => ({ SPOOL_URL: new URL(pods[0]!.caller.baseUrl).origin, SPOOL_TOKEN: system.operatorToken });

interface Subject {
  token: string;
  tokenId: string;
  /** Another token of the same person, which nothing happens to. */
  otherToken: string;
  personId: string;
  agentId: string;
  threadId: string;
  service: boolean;
}

/** A person, invited to an agent of their own organization, with a Thread; or a service token that lists the agent. */
async function newSubject(service = false): Promise<Subject> {
  const organizationId = await access.createOrganization('Acme');
  const personId = await access.createPerson('Ada');
  await access.addMember(organizationId, personId);
  const manifest = { name: 'echo', harness: { name: 'echo' } };
  const agentId = await createAgent(system.database.pool, { organizationId, access: 'invited', manifest });
  await publishAgentVersion(system.database.pool, agentId, manifest);
  await sql('insert into agent_people (agent_id, person_id) values ($1, $2)', agentId, personId);
  const person = { kind: 'person', name: 'test', personId } as const;
  const { id: tokenId, token } = await access.mintToken(
    service ? { kind: 'service', name: 'test', organizationId, agentIds: [agentId] } : person,
  );
  const { token: otherToken } = await access.mintToken(person);
  // Without a worker: its Run stays queued, and its stream open.
  const { status, body } = await createThread({ ...pods[0]!.caller, token, agentId }, 'hello');
  expect(status).toBe(201);
  return { token, tokenId, otherToken, personId, agentId, threadId: body.thread.id, service };
}

const sql = (text: string, ...values: string[]) => system.database.pool.query(text, values);

/** PostgreSQL's clock, milliseconds. A read before a request is sent is never later than the request. */
async function databaseNow(): Promise<number> {
  const { rows } = await sql('select 1000 * extract(epoch from clock_timestamp())::float8 as now');
  return (rows[0] as { now: number }).now;
}

const untilDatabaseTime = (at: number) =>
  eventually(async () => (await databaseNow()) >= at, { what: 'the time has come on PostgreSQL’s clock' });
const callerOf = (pod: ApiProcess, { token }: Subject): Caller => ({ ...pod.caller, token });
const codeOf = (body: unknown) => (body as { error?: { code: string } }).error?.code;
const errorOf = (frames: Frame[]) => frames.at(-1)?.event === 'thread.error' && codeOf(JSON.parse(frames.at(-1)!.data));

/** Opens a stream; `ended` is its frames, once it has ended. */
async function openStream(caller: Caller, threadId: string): Promise<{ ended: Promise<Frame[]> }> {
  let isOpen = false;
  const stop = (): boolean => {
    isOpen = true;
    return false;
  };
  const ended = readStream(caller, `/threads/${threadId}/events/stream`, { stop });
  await Promise.race([ended, eventually(() => isOpen, { what: 'the stream has begun', timeoutMs: 10_000 })]);
  return { ended };
}

const revoke = ({ tokenId }: Subject) => access.revokeToken(tokenId);

const changes: [string, (subject: Subject) => Promise<unknown>, number, string, boolean?][] = [
  ['the token is revoked', revoke, 401, 'unauthenticated'],
  [
    'the token is given an end that has passed',
    (of) => sql(`update tokens set expires_at = now() - interval '1 s' where id = $1`, of.tokenId),
    401,
    'unauthenticated',
  ],
  ['the token is deleted', (of) => sql('delete from tokens where id = $1', of.tokenId), 401, 'unauthenticated'],
  [
    'the person leaves the organization',
    (of) => sql('delete from memberships where person_id = $1', of.personId),
    403,
    'forbidden',
  ],
  [
    'the invitation is taken back',
    (of) => sql('delete from agent_people where person_id = $1', of.personId),
    403,
    'forbidden',
  ],
  [
    'the service token lists the agent no more',
    (of) => sql('delete from token_agents where token_id = $1', of.tokenId),
    403,
    'forbidden',
    true,
  ],
  [
    'the agent is unpublished',
    (of) => sql('update agents set published = false where id = $1', of.agentId),
    409,
    'agent_not_published',
  ],
  [
    'API access is switched off',
    (of) => sql('update agents set api_enabled = false where id = $1', of.agentId),
    409,
    'service_inactive',
  ],
  [
    'the agent is deleted',
    (of) => sql('update agents set deleted_at = now() where id = $1', of.agentId),
    404,
    'not_found',
  ],
];

// At once: each takes its seconds, in which nothing is to be done.
test.concurrent.each(changes)(
  '%s: from 5 s later on both refuse, and open streams show nothing',
  async (_, change, status, code, service = false) => {
    const subject = await newSubject(service);
    await seenAfter(subject, { status, code }, async () => {
      await change(subject);
      return databaseNow();
    });
  },
);

test.concurrent('the token expires by itself: likewise', async () => {
  const subject = await newSubject();
  await seenAfter(subject, { status: 401, code: 'unauthenticated' }, async () => {
    // Both read it before, when they ask about their open streams.
    const expiresAt = (await databaseNow()) + 4_000;
    await sql(
      'update tokens set expires_at = to_timestamp($2::float8 / 1000) where id = $1',
      subject.tokenId,
      `${expiresAt}`,
    );
    await untilDatabaseTime(expiresAt);
    return expiresAt;
  });
});

/** Warms both up, has it happen, and counts from its commit until it is seen by each, in requests and in a stream. */
async function seenAfter(
  subject: Subject,
  expected: { status: number; code: string },
  happens: () => Promise<number>,
): Promise<void> {
  const { threadId } = subject;
  const streams = await Promise.all(
    pods.map(async (pod) => {
      const caller = callerOf(pod, subject);
      for (let i = 0; i < 3; i++) expect((await getThread(caller, threadId)).status).toBe(200);
      return openStream(caller, threadId);
    }),
  );
  const trustedUntil = (await happens()) + SEEN_WITHIN_MS;
  const refusals = pods.map((pod) =>
    untilSeen(trustedUntil, async () => {
      const { status, body } = await getThread(callerOf(pod, subject), threadId);
      return status === expected.status && codeOf(body) === expected.code;
    }),
  );
  const shownLate = untilDatabaseTime(trustedUntil).then(() => appendTo(threadId));
  const ends = streams.map(async ({ ended }) => {
    const frames = await ended;
    expect(errorOf(frames)).toBe(expected.code);
    // The stream must not show later entries, even if it ends late.
    expect(frames.some(({ data }) => data.includes('session_files.updated'))).toBe(false);
  });
  await Promise.all([...refusals, ...ends, shownLate]);
}

/** Asks again and again. A request that was sent after the time and does not see the change is a violation. */
async function untilSeen(trustedUntil: number, ask: () => Promise<boolean>): Promise<void> {
  for (;;) {
    const sentAt = await databaseNow();
    if (await ask()) return;
    expect(sentAt).toBeLessThan(trustedUntil);
    await last(ASK_AGAIN_MS);
  }
}

/** Stores an entry that an open stream would show. */
async function appendTo(threadId: string): Promise<void> {
  const handler = new CommandHandler({ store: new ThreadStore(system.database.pool), leaseMs: 1_000 });
  const outcome = await handler.handle({ threadId, commands: [{ type: 'attach_file', fileId: newId() }] });
  expect(outcome).toMatchObject({ outcome: 'appended' });
}

test.concurrent.each([
  ['the command line', (of: Subject) => new SpoolCommand(operatorEnv()).json('token', 'limit', of.tokenId, ...LIMITS)],
  [
    'the command line on the database',
    (of: Subject) => new SpoolCommand(system.env).json('token', 'limit', of.tokenId, ...LIMITS, '--local'),
  ],
  [
    'the admin API',
    (of: Subject) => {
      const operator = operatorOf(system, pods[0]!);
      return send(operator, 'POST', `/tokens/${of.tokenId}`, { requestsPerMinute: 5_000, maxStreams: 1 });
    },
  ],
])('limits of a token that are set by %s: both processes apply them within 5 s', async (_, limit) => {
  const subject = await newSubject();
  const { threadId } = subject;
  const streams = pods.map((pod) => new LeanReader(threadId, () => undefined).visit(callerOf(pod, subject)));
  await Promise.all(streams);
  await limit(subject);
  const trustedUntil = (await databaseNow()) + SEEN_WITHIN_MS;
  await Promise.all(
    pods.map(async (pod) => {
      await untilSeen(trustedUntil, async () => {
        const { status, headers } = await getThread(callerOf(pod, subject), threadId);
        expect(status).toBe(200);
        return headers.get('ratelimit-limit') === '5000';
      });
      // Each process has one open stream. It stays open, and further ones are refused.
      const { status } = await send(callerOf(pod, subject), 'GET', `/threads/${threadId}/events/stream`);
      expect(status).toBe(429);
    }),
  );
});

test.concurrent('a new token works at once everywhere', async () => {
  const { personId, agentId } = await newSubject();
  for (let i = 0; i < 20; i++) {
    const { token } = await access.mintToken({ kind: 'person', personId, name: 'new' });
    const answers = await Promise.all(
      pods.map(({ caller }) => send({ ...caller, token }, 'GET', `/agents/${agentId}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  }
});

test('a process that was suspended over a revocation serves nobody by what it remembers', async () => {
  const subject = await newSubject();
  const [one, suspended] = pods as [ApiProcess, ApiProcess];
  const caller = callerOf(suspended, subject);
  expect((await getThread(caller, subject.threadId)).status).toBe(200);
  const { ended } = await openStream(caller, subject.threadId);
  suspended.process.signal('SIGSTOP');
  await revoke(subject);
  const asked = Array.from({ length: 10 }, () => getThread(caller, subject.threadId));
  // Something for the stream to show, were it not asked first whether it may.
  const interrupt = { type: 'user_interrupt' };
  const interrupted = await postEvents({ ...one.caller, token: subject.otherToken }, subject.threadId, interrupt);
  expect(interrupted.status).toBe(200);
  await untilDatabaseTime((await databaseNow()) + SEEN_WITHIN_MS);
  suspended.process.signal('SIGCONT');
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(10).fill(401));
  const frames = await ended;
  expect(errorOf(frames)).toBe('unauthenticated');
  expect(frames.some(({ data }) => data.includes('cancelled'))).toBe(false);
});

const cannotAsk = async (): Promise<void> => {
  const subject = await newSubject();
  const proxy = await faultProxy(Number(new URL(system.databaseUrl).port || 5432));
  try {
    const pod = await system.startApi({ DATABASE_URL: proxy.through(system.databaseUrl) });
    // Needs no query when warm, so it works without the database while the cached policy is trusted.
    const ask = async () => (await send(callerOf(pod, subject), 'GET', `/agents/${subject.agentId}`)).status;
    expect(await ask()).toBe(200);
    proxy.cut();
    await revoke(subject);
    await untilSeen((await databaseNow()) + SEEN_WITHIN_MS, async () => (await ask()) === 503);
    proxy.resume();
    const statuses = new Set<number>();
    await eventually(async () => statuses.add(await ask()).has(401), { what: 'the status is 401' });
    expect([...statuses].filter((status) => status !== 503)).toEqual([401]);
    await pod.process.kill();
  } finally {
    await proxy.close();
  }
};
test.concurrent('a process without its database rejects requests once its cached policy expires', cannotAsk);
