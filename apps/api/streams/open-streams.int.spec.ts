import { PolicyWatch } from '#platform';
import { eventually } from '#testing';
import { EventStream } from './event-stream.ts';
import { StreamsUnderTest, type TestStream } from './streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL, access checks. Only the watch's clock is mocked. It reports all data as too old, as after a suspended
// process or an unavailable database.

let api: StreamsUnderTest;
let threadId: string;
let runId: string;
let token: string;
let tokenId: string;
let stream: TestStream;
let restoreClock: () => void;

beforeAll(async () => {
  api = await StreamsUnderTest.start();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await api.release();
});
afterAll(() => api.stop());

/** The age at which a confirmed access expires, milliseconds. */
const TOO_OLD_MS = 2_000;

/** Opens a stream, reads all entries, and lets the hub deliver more after the confirmed access has expired. Returns their count. */
async function hold(query = '', happens = () => api.record(threadId, runId, 'held')): Promise<number> {
  const person = await api.newPerson();
  ({ token, tokenId } = person);
  threadId = await api.newThread(person);
  runId = await api.startRun(threadId);
  stream = await api.openStream(threadId, query, { token });
  const { length } = await api.log(threadId);
  await stream.untilHas(length);
  const age = jest.spyOn(api.app.get(PolicyWatch), 'ageOf').mockReturnValue(TOO_OLD_MS);
  restoreClock = () => age.mockRestore();
  const delivered = jest.spyOn(EventStream.prototype, 'deliver');
  await happens();
  await eventually(() => delivered.mock.results.length > 0, { what: 'the hub has given it to the stream' });
  expect(delivered.mock.results[0]!.value).toBe(false);
  return length;
}

it('a stream holds entries back until access is confirmed again, then shows all of them', async () => {
  const shown = await hold();
  await api.record(threadId, runId, 'later');
  expect(stream.ids).toHaveLength(shown);
  restoreClock();
  await stream.untilHas(shown + 2);
  expect(stream.ids).toEqual(await api.log(threadId));
});

it('a stream never shows held entries to a caller who has lost access', async () => {
  const shown = await hold();
  const watch = api.app.get(PolicyWatch);
  const { generation } = watch;
  await api.access.revokeToken(tokenId);
  await eventually(() => watch.generation !== generation, { what: 'the watch notices' });
  restoreClock();
  await stream.untilClosed();
  expect([stream.error?.code, stream.ids.length]).toEqual(['unauthenticated', shown]);
});

it('a stream with held entries ends without thread.idle, and a resumed stream delivers them', async () => {
  const shown = await hold('?until=idle', () => api.complete(threadId, runId));
  await stream.untilClosed();
  expect([stream.isComplete, stream.last, stream.ids.length]).toEqual([true, null, shown]);
  restoreClock();
  const resumed = await api.openStream(threadId, `?until=idle&after=${stream.ids.at(-1)}`, { token });
  await resumed.untilClosed();
  expect(resumed.last?.event).toBe('thread.idle');
  expect([...stream.ids, ...resumed.ids]).toEqual(await api.log(threadId));
});
