import { createAgent, publishAgentVersion } from '#agents';
import { eventually } from '#testing';
import { StreamsUnderTest, type TestStream } from './streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL, access checks.

let api: StreamsUnderTest;
beforeAll(async () => {
  api = await StreamsUnderTest.start({
    STREAMS_PER_THREAD: 2,
    STREAMS_PER_PERSON_TOKEN: 3,
    STREAMS_PER_SERVICE_TOKEN: 4,
    STREAMS_PER_PROCESS: 10,
    STREAMS_PERCENT_PER_ORGANIZATION: 60,
  });
});
afterEach(() => api.release());
afterAll(() => api.stop());

/** How each error message begins. */
const OF_THREAD = 'The Thread has 2 open streams';
const OF_ORGANIZATION = 'The organization has 6 open streams';

const open = async (threadId: string, token = api.token): Promise<TestStream> => {
  const stream = await api.openStream(threadId, '', { token });
  expect(stream.status).toBe(200);
  return stream;
};

async function refused(threadId: string, token: string, status: number, code: string, message: string) {
  const stream = await api.openStream(threadId, '', { token });
  await stream.untilClosed();
  const { error } = JSON.parse(stream.text) as { error: { code: string; message: string } };
  expect([stream.status, error.code, error.message.slice(0, message.length)]).toEqual([status, code, message]);
  expect(Number(stream.response.headers['retry-after'])).toBeGreaterThan(0);
}

/** A Thread of a new person of the organization, with their token. */
async function personal(): Promise<{ threadId: string; token: string; tokenId: string }> {
  const person = await api.newPerson();
  return { ...person, threadId: await api.newThread({ personId: person.personId }) };
}

test('a Thread has a limit of streams over all its readers; closing one makes room', async () => {
  const { token: otherToken } = await api.access.mintToken({ kind: 'person', personId: api.personId, name: 'other' });
  const threadId = await api.newThread();
  const first = await open(threadId);
  await open(threadId, otherToken);
  for (const token of [api.token, otherToken]) await refused(threadId, token, 429, 'rate_limited', OF_THREAD);
  // Each Thread has its own count.
  await open(await api.newThread());
  first.destroy();
  await eventually(async () => (await api.openStream(threadId)).status === 200, { what: 'there is room again' });
});

test('two concurrent requests do not both take the last stream', async () => {
  const threadId = await api.newThread();
  const streams = await Promise.all(Array.from({ length: 6 }, () => api.openStream(threadId)));
  expect(streams.map(({ status }) => status).toSorted()).toEqual([200, 200, 429, 429, 429, 429]);
});

test('a person’s token and a service token have different limits of streams', async () => {
  const { token, threadId } = await personal();
  const ofToken = async (own: string, newThread: () => Promise<string>, count: number) => {
    for (let i = 0; i < count; i++) await open(await newThread(), own);
    await refused(await newThread(), own, 429, 'rate_limited', `The token has ${count} open streams`);
    await api.release();
  };
  const { personId } = await api.newPerson();
  const { token: own } = await api.access.mintToken({ kind: 'person', personId, name: 'own' });
  await ofToken(own, () => api.newThread({ personId }), 3);
  // Each token has its own count.
  await open(threadId, token);

  const { organizationId, agentId } = api;
  const service = { kind: 'service', organizationId, agentIds: [agentId], name: 'service' } as const;
  const { token: ofService } = await api.access.mintToken(service);
  const newThread = async (): Promise<string> => {
    const response = await fetch(`${api.url}/agents/${agentId}/threads`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ofService}`, 'content-type': 'application/json' },
      body: JSON.stringify({ userId: 'u' }),
    });
    return ((await response.json()) as { thread: { id: string } }).thread.id;
  };
  await ofToken(ofService, newThread, 4);
});

test('a limit set for the token replaces the default and applies to the next stream', async () => {
  const { token, tokenId, threadId } = await personal();
  await open(threadId, token);
  await api.access.updateToken(tokenId, { maxStreams: 1 });
  const isRefused = async () => {
    const stream = await api.openStream(threadId, '', { token });
    if (stream.status === 429) return true;
    stream.destroy();
    return false;
  };
  await eventually(isRefused, { what: 'one more is refused', timeoutMs: 5_000 });
  await refused(threadId, token, 429, 'rate_limited', 'The token has 1 open streams');
});

describe('a full process', () => {
  /** Opens one stream for each of `count` new people. */
  async function fill(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const { threadId, token } = await personal();
      await open(threadId, token);
    }
  }

  /** A person of another organization, with a Thread of an agent there. */
  async function elsewhere(): Promise<{ threadId: string; token: string }> {
    const organizationId = await api.access.createOrganization('Other');
    const personId = await api.access.createPerson('Bob');
    await api.access.addMember(organizationId, personId);
    const manifest = { name: 'echo', harness: { name: 'echo' } };
    const agentId = await createAgent(api.pool, { organizationId, manifest });
    await publishAgentVersion(api.pool, agentId, manifest);
    const { token } = await api.access.mintToken({ kind: 'person', personId, name: 'test' });
    return { threadId: await api.newThread({ personId, agentId }), token };
  }

  test('returns 429 to an organization beyond its share, admits another, and returns 503 when it is full', async () => {
    const mine = await personal();
    await fill(6);
    await refused(mine.threadId, mine.token, 429, 'rate_limited', OF_ORGANIZATION);
    for (let i = 0; i < 2; i++) {
      const { threadId, token } = await elsewhere();
      for (let j = 0; j < 2; j++) await open(threadId, token);
    }
    const late = await elsewhere();
    await refused(late.threadId, late.token, 503, 'internal_error', 'This process has 10 open streams');
    // The narrower limit is reported first. Waiting for the process would not help this organization.
    await refused(mine.threadId, mine.token, 429, 'rate_limited', OF_ORGANIZATION);
    // HEAD opens no stream and returns the same status.
    const head = await fetch(`${api.url}/threads/${late.threadId}/events/stream`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${late.token}` },
    });
    expect([head.status, head.headers.get('retry-after')]).toEqual([503, '5']);
  });
});
