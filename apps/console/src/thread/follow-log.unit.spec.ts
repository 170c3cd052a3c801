import type { ThreadEventLogEntry as LogEntry } from '#contract';
import { followLog, type Connection } from './follow-log.ts';

type Attempt = (after: string, signal: AbortSignal, heard: () => void) => AsyncIterable<LogEntry>;

const entry = (id: string) => ({ id }) as LogEntry;

/** Follows through one attempt after another; after the last of them the reader leaves. */
async function follow(attempts: Attempt[]) {
  const leaving = new AbortController();
  const asked: string[] = [];
  const seen: string[] = [];
  const connections: Connection[] = [];
  const pauses: number[] = [];
  const left = [...attempts];
  await followLog({
    after: 'a',
    read: (after, signal, heard) => {
      asked.push(after);
      return left.shift()!(after, signal, heard);
    },
    onEntry: ({ id }) => void seen.push(id),
    onConnection: (connection) => void (connections.at(-1) !== connection && connections.push(connection)),
    pause: async (ms) => {
      pauses.push(ms);
      if (left.length === 0) leaving.abort();
    },
    signal: leaving.signal,
  });
  return { asked, seen, connections, pauses };
}

const answers = (ids: string, error?: Error): Attempt =>
  async function* (_after, _signal, heard) {
    heard();
    for (const id of ids) yield entry(id);
    if (error) throw error;
  };

const refuses = (status: number): Attempt =>
  async function* () {
    throw Object.assign(new Error('refused'), { status });
  };

test('a connection that ends or breaks is followed by another, from the entry seen last', async () => {
  const { asked, seen, connections } = await follow([
    answers('bc'),
    answers('', new TypeError('network')),
    answers('d'),
  ]);
  expect(asked).toEqual(['a', 'c', 'c']);
  expect(seen).toEqual(['b', 'c', 'd']);
  expect(connections).toEqual(['connecting', 'live', 'reconnecting', 'live', 'reconnecting', 'live', 'reconnecting']);
});

test('an entry that is sent again is not taken again', async () => {
  const { seen } = await follow([answers('bc'), answers('abcd')]);
  expect(seen).toEqual(['b', 'c', 'd']);
});

test('it is tried ever more seldom while nothing answers, and soon again once something has', async () => {
  const { pauses } = await follow([...Array.from({ length: 6 }, () => refuses(0)), answers('b'), refuses(502)]);
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 500, 1_000]);
});

test.each([
  [404, 'gone'],
  [401, 'refused'],
  [403, 'refused'],
])('a refusal with %i ends it', async (status, connection) => {
  const { connections, pauses } = await follow([answers('b'), refuses(status), answers('c')]);
  expect(connections.at(-1)).toBe(connection);
  expect(pauses).toHaveLength(1);
});

describe('with the clock in hand', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('a connection that says nothing any more is left for another', async () => {
    let signOfLife: () => void = () => undefined;
    const silent: Attempt = async function* (_after, signal, heard) {
      heard();
      signOfLife = heard;
      yield entry('b');
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    };
    const following = follow([silent, answers('c')]);
    await jest.advanceTimersByTimeAsync(39_000);
    signOfLife();
    await jest.advanceTimersByTimeAsync(39_000);
    let isOver = false;
    void following.then(() => (isOver = true));
    await jest.advanceTimersByTimeAsync(0);
    expect(isOver).toBe(false);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await following).toMatchObject({ asked: ['a', 'b'], seen: ['b', 'c'] });
  });
});
