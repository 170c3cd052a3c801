import { PolicyWatch } from '#platform';
import { eventually } from '#testing';
import { EventStream } from './event-stream.ts';
import { StreamsUnderTest, type TestStream } from './streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL, access checks. Only the watch's clock is not: it says that everything known is too old, as in a
// process that was suspended, or whose database was away.

let api: StreamsUnderTest;
let threadId: string;
let runId: string;
let token: string;
let tokenId: string;
let stream: TestStream;
let goOn: () => void;

beforeAll(async () => {
  api = await StreamsUnderTest.start();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await api.release();
});
afterAll(() => api.stop());

/** As old as a permission to read may not be. Milliseconds. */
const TOO_OLD_MS = 2_000;

/** A stream that has shown all, and is then given more by the hub when it last asked too long ago whether it may. */
async function hold(query = '', happens = () => api.record(threadId, runId, 'held')): Promise<number> {
  const person = await api.newPerson();
  ({ token, tokenId } = person);
  threadId = await api.newThread(person);
  runId = await api.startRun(threadId);
  stream = await api.openStream(threadId, query, { token });
  const { length } = await api.log(threadId);
  await stream.untilHas(length);
  const age = jest.spyOn(api.app.get(PolicyWatch), 'ageOf').mockReturnValue(TOO_OLD_MS);
  goOn = () => age.mockRestore();
  const delivered = jest.spyOn(EventStream.prototype, 'deliver');
  await happens();
  await eventually(() => delivered.mock.results.length > 0, { what: 'the hub has given it to the stream' });
  expect(delivered.mock.results[0]!.value).toBe(false);
  return length;
}

it('shows nothing while it is not known whether its caller may still read, and all of it when it is', async () => {
  const shown = await hold();
  await api.record(threadId, runId, 'later');
  expect(stream.ids).toHaveLength(shown);
  goOn();
  await stream.untilHas(shown + 2);
  expect(stream.ids).toEqual(await api.log(threadId));
});

it('never shows what was held to one who may read no more', async () => {
  const shown = await hold();
  const watch = api.app.get(PolicyWatch);
  const { generation } = watch;
  await api.access.revokeToken(tokenId);
  await eventually(() => watch.generation !== generation, { what: 'the watch notices' });
  goOn();
  await stream.untilClosed();
  expect([stream.error?.code, stream.ids.length]).toEqual(['unauthenticated', shown]);
});

it('does not say that all is delivered while something is held: who comes back is given it', async () => {
  const shown = await hold('?until=idle', () => api.complete(threadId, runId));
  await stream.untilClosed();
  expect([stream.isComplete, stream.last, stream.ids.length]).toEqual([true, null, shown]);
  goOn();
  const resumed = await api.openStream(threadId, `?until=idle&after=${stream.ids.at(-1)}`, { token });
  await resumed.untilClosed();
  expect(resumed.last?.event).toBe('thread.idle');
  expect([...stream.ids, ...resumed.ids]).toEqual(await api.log(threadId));
});
