import { createLogger } from '#platform';
import { GatheringBus, type WakeTransport } from './gathering-bus.ts';
import { encodeNews, type News } from './news.ts';

const T1 = '01ARZ3NDEKTSV4RRFFQ69G5FA1';
const T2 = '01ARZ3NDEKTSV4RRFFQ69G5FA2';

/** A transport whose round trips last until `answer`. */
class Line implements WakeTransport {
  readonly maxMessageLength = 7_900;
  readonly sent: string[][] = [];
  private answers: (() => void)[] = [];

  constructor(readonly receive: (message: string) => void) {}

  send(messages: string[]): Promise<void> {
    this.sent.push(messages);
    return new Promise((resolve) => this.answers.push(resolve));
  }

  isUp(): boolean {
    return true;
  }

  answer(): Promise<void> {
    this.answers.splice(0).forEach((end) => end());
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Returns the wake-ups of the n-th round trip. */
  wakes(n: number): string[] {
    return this.sent[n]!.flatMap((message) => message.split(' ').slice(1));
  }
}

let line: Line;
let bus: GatheringBus;
let heard: [string, number][];

beforeEach(() => {
  jest.useFakeTimers();
  bus = new GatheringBus((receive) => (line = new Line(receive)), createLogger('silent', 'test'));
  heard = [];
  bus.onWake((threadId, version) => heard.push([threadId, version]));
});
afterEach(() => jest.useRealTimers());

it('sends the first wake-up immediately and the highest version per Thread of the next millisecond in one round trip', async () => {
  bus.publish(T1, 1);
  expect(line.wakes(0)).toEqual([`${T1}:1`]);
  await line.answer();
  for (const version of [2, 4, 3]) bus.publish(T1, version);
  bus.publish(T2, 1);
  await jest.advanceTimersByTimeAsync(0);
  expect(line.sent).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(1);
  expect(line.wakes(1)).toEqual([`${T1}:4`, `${T2}:1`]);
});

it('sends immediately again after a millisecond without a wake-up', async () => {
  bus.publish(T1, 1);
  await line.answer();
  await jest.advanceTimersByTimeAsync(1);
  bus.publish(T1, 2);
  expect(line.sent).toHaveLength(2);
});

describe('entries', () => {
  const news = (fromVersion: number, version: number, events = '{}'): News => {
    return { fromVersion, version, eventId: T2, idle: false, events };
  };
  /** Returns the wake-ups of the second round trip, after these were published together. */
  async function sentTogether(...all: News[]): Promise<string[]> {
    bus.publish(T2, 1);
    for (const one of all) bus.publish(T1, one.version, one);
    await line.answer();
    await jest.advanceTimersByTimeAsync(1);
    return line.wakes(1);
  }

  it('are sent before their wake-up, which older releases read alone', async () => {
    const sent = await sentTogether(news(3, 4));
    expect(sent).toEqual([encodeNews(T1, news(3, 4)), `${T1}:4`]);
    expect(sent[0]).not.toMatch(/^([0-9A-Z]{26}):(\d{1,10})$/);
  });

  it('of several commits are joined, and left out after a gap', async () => {
    expect(await sentTogether(news(3, 4), news(4, 6))).toEqual([encodeNews(T1, news(3, 6, '{},{}')), `${T1}:6`]);
    bus.publish(T1, 7, news(6, 7));
    bus.publish(T1, 9, news(8, 9));
    await line.answer();
    await jest.advanceTimersByTimeAsync(2);
    expect(line.wakes(2)).toEqual([`${T1}:9`]);
  });

  it('that do not fit into a message are left out', async () => {
    expect(await sentTogether(news(3, 4, 'x'.repeat(7_000)))).toEqual([`${T1}:4`]);
  });

  it('reach listeners before the wake-up', () => {
    const received: [number, News | undefined][] = [];
    bus.onWake((_, version, entries) => received.push([version, entries]));
    line.receive(`other ${encodeNews(T1, news(3, 4))} ${T1}:4`);
    expect(received).toEqual([
      [4, news(3, 4)],
      [4, undefined],
    ]);
  });
});

it('makes one round trip at a time and keeps wake-ups of at most 10,000 Threads meanwhile', async () => {
  bus.publish(T1, 1);
  for (let i = 0; i < 50_000; i++) bus.publish(`01ARZ3NDEKTSV4RRFFQ6${String(i).padStart(6, '0')}`, 1);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(line.sent).toHaveLength(1);
  await line.answer();
  await jest.advanceTimersByTimeAsync(0);
  expect(line.sent).toHaveLength(2);
  expect(line.wakes(1)).toHaveLength(10_000);
  for (const message of line.sent[1]!) expect(Buffer.byteLength(message)).toBeLessThan(8_000);
});

it('wakes local listeners directly and ignores the echo', () => {
  bus.publish(T1, 1);
  expect(heard).toEqual([[T1, 1]]);
  line.sent[0]!.forEach((message) => line.receive(message));
  expect(heard).toEqual([[T1, 1]]);
});

it('wakes listeners for messages of other processes and ignores malformed messages', () => {
  line.receive(`other ${T1}:3 ${T2}:4`);
  for (const foreign of ['', 'other', 'other x:1', `other ${T1}`, `other ${T1}:x`, '{"thread":1}'])
    line.receive(foreign);
  expect(heard).toEqual([
    [T1, 3],
    [T2, 4],
  ]);
});

it('does not let a listener that throws fail the publisher', () => {
  const others: string[] = [];
  bus.onWake(() => {
    throw new Error('a bug');
  });
  bus.onWake((threadId) => others.push(threadId));
  bus.publish(T1, 1);
  expect(others).toEqual([T1]);
});

it('does not wake a removed listener', () => {
  const remove = bus.onWake(() => heard.push(['removed', 0]));
  remove();
  bus.publish(T1, 1);
  expect(heard).toEqual([[T1, 1]]);
});

it('sends gathered wake-ups before it closes and waits at most 500 ms for a silent server', async () => {
  bus.publish(T1, 1);
  bus.publish(T2, 1);
  const closed = bus.close();
  await line.answer();
  await jest.advanceTimersByTimeAsync(0);
  expect(line.wakes(1)).toEqual([`${T2}:1`]);
  await jest.advanceTimersByTimeAsync(500);
  await closed;
  bus.publish(T1, 2);
  expect(line.sent).toHaveLength(2);
});
