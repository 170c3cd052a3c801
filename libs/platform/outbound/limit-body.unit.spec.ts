import { BodyTooLarge, limitBody as limitBodyInTurns, type BodyLimit } from './limit-body.ts';

const limitBody = (response: Response, limit: Omit<BodyLimit, 'turn'>): Response =>
  limitBodyInTurns(response, { turn: { events: 25, bytes: 1_000 }, ...limit });

const responseOf = (chunks: string[], type = 'application/json') => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
      controller.close();
    },
  });
  return new Response(body, { status: 201, headers: { 'content-type': type, 'x-more': '1' } });
};

const EVENTS = 'text/event-stream; charset=utf-8';

describe('a limited body', () => {
  test('is passed on unchanged within the limit', async () => {
    const ends: unknown[] = [];
    const response = limitBody(responseOf(['abc', 'de']), { maxBytes: 5, onEnd: (error) => ends.push(error) });
    expect([response.status, response.headers.get('x-more')]).toEqual([201, '1']);
    expect(await response.text()).toBe('abcde');
    expect(ends).toEqual([undefined]);
  });

  test('fails beyond the limit, and reports the error', async () => {
    const ends: unknown[] = [];
    const response = limitBody(responseOf(['abc', 'def']), { maxBytes: 5, onEnd: (error) => ends.push(error) });
    await expect(response.text()).rejects.toThrow(BodyTooLarge);
    expect(ends).toEqual([expect.any(BodyTooLarge)]);
  });

  test.each(['\n', '\r', '\r\n'])('is counted per event in a stream with lines that end in %j', async (end) => {
    const event = `data: 1234${end}${end}`;
    const limit = { maxBytes: event.length };
    const chunks = (event.repeat(3) + event).match(/.{1,7}/gs) ?? [];
    expect(await limitBody(responseOf(chunks, EVENTS), limit).text()).toBe(event.repeat(4));
    const lines = `data: 1${end}data: 2${end}data: 3${end}${end}`;
    await expect(limitBody(responseOf([event, lines], EVENTS), limit).text()).rejects.toThrow(BodyTooLarge);
  });

  test.each<[string, string[], string, number[]]>([
    ['of the body', ['abc', 'de'], 'application/json', [3, 5, 0]],
    ['of the current event', ['data: 1\n', '\ndata', ': 2\n\n'], EVENTS, [8, 4, 0, 0]],
  ])('reports the bytes held: %s', async (_, chunks, type, expected) => {
    const told: number[] = [];
    await limitBody(responseOf(chunks, type), { maxBytes: 50, onHeld: (bytes) => told.push(bytes) }).text();
    expect(told).toEqual(expected);
  });

  test('holds nothing after a failure or a cancellation by its reader', async () => {
    const told: number[] = [];
    const onHeld = (bytes: number): void => {
      told.push(bytes);
      if (bytes > 3) throw new Error('no room');
    };
    await expect(limitBody(responseOf(['abc', 'de']), { maxBytes: 50, onHeld }).text()).rejects.toThrow('no room');
    const left = limitBody(responseOf(['abc', 'de']), { maxBytes: 50, onHeld });
    for await (const _ of left.body ?? []) break;
    expect(told.slice(0, 4)).toEqual([3, 5, 0, 3]);
    expect(told.at(-1)).toBe(0);
  });

  test('passes on few events together, in a new turn if the reader is slow, and counts them', async () => {
    const event = 'data: x\n\n';
    const counts: number[] = [];
    const limit = { maxBytes: 50, onEvents: (count: number) => counts.push(count) };
    const pieces: string[] = [];
    let turns = 0;
    let isCounting = true;
    const count = (): void => {
      turns += 1;
      if (isCounting) setImmediate(count);
    };
    setImmediate(count);
    const body = limitBody(responseOf([event.repeat(110)], EVENTS), limit).body!;
    for await (const piece of body) {
      pieces.push(Buffer.from(piece).toString());
      const until = performance.now() + 6;
      while (performance.now() < until);
    }
    isCounting = false;
    expect(pieces.map(({ length }) => length / event.length)).toEqual([25, 25, 25, 25, 10]);
    expect(pieces.join('')).toBe(event.repeat(110));
    expect(counts).toEqual([25, 25, 25, 25, 10]);
    expect(turns).toBeGreaterThan(1);
  });

  test('fails if `onEvents` throws', async () => {
    const onEvents = (): never => {
      throw new Error('too many');
    };
    await expect(limitBody(responseOf(['data: x\n\n'], EVENTS), { maxBytes: 50, onEvents }).text()).rejects.toThrow(
      'too many',
    );
    expect(await limitBody(responseOf(['\n\n']), { maxBytes: 50, onEvents }).text()).toBe('\n\n');
  });

  test('is null if the response has none', () => {
    const response = new Response(null, { status: 202 });
    expect(limitBody(response, { maxBytes: 1 })).toBe(response);
  });
});
