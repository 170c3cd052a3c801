import { BodyTooLarge, limitBody } from './limit-body.ts';

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
  test('is the same answer where it is small enough', async () => {
    const ends: unknown[] = [];
    const response = limitBody(responseOf(['abc', 'de']), { maxBytes: 5, onEnd: (error) => ends.push(error) });
    expect([response.status, response.headers.get('x-more')]).toEqual([201, '1']);
    expect(await response.text()).toBe('abcde');
    expect(ends).toEqual([undefined]);
  });

  test('fails where it has more, and says so', async () => {
    const ends: unknown[] = [];
    const response = limitBody(responseOf(['abc', 'def']), { maxBytes: 5, onEnd: (error) => ends.push(error) });
    await expect(response.text()).rejects.toThrow(BodyTooLarge);
    expect(ends).toEqual([expect.any(BodyTooLarge)]);
  });

  test.each(['\n', '\r', '\r\n'])(
    'of events is counted from one to the next, with lines that end in %j',
    async (end) => {
      const event = `data: 1234${end}${end}`;
      const limit = { maxBytes: event.length };
      const chunks = (event.repeat(3) + event).match(/.{1,7}/gs) ?? [];
      expect(await limitBody(responseOf(chunks, EVENTS), limit).text()).toBe(event.repeat(4));
      const lines = `data: 1${end}data: 2${end}data: 3${end}${end}`;
      await expect(limitBody(responseOf([event, lines], EVENTS), limit).text()).rejects.toThrow(BodyTooLarge);
    },
  );

  test('of events is passed on event by event, and what is left at its end', async () => {
    const pieces: string[] = [];
    const limited = limitBody(responseOf(['da', 'ta: 1\n', '\nda', 'ta: 2\n\n', ': the', ' end'], EVENTS), {
      maxBytes: 50,
    });
    for await (const piece of limited.body ?? []) pieces.push(Buffer.from(piece as Uint8Array).toString());
    expect(pieces).toEqual(['data: 1\n\nda', 'ta: 2\n\n', ': the end']);
  });

  test('stays none where there is none', () => {
    const response = new Response(null, { status: 202 });
    expect(limitBody(response, { maxBytes: 1 })).toBe(response);
  });
});
