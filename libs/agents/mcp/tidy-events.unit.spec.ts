import { tidyEvents } from './tidy-events.ts';

const result = '{"jsonrpc":"2.0","id":1,"result":{"a":"é"}}';
const tidy = `data: ${result}\n\n`;

/** Passes bytes on in pieces of so many. */
async function pass(text: string, size: number): Promise<string> {
  const bytes = Buffer.from(text);
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size));
      controller.close();
    },
  });
  return new Response(source.pipeThrough(tidyEvents())).text();
}

describe.each([1, 2, 3, 1_000])('events in pieces of %i bytes', (size) => {
  it.each([
    ['an event', tidy, tidy],
    ['line ends of Windows', `id: 1\r\ndata:${result}\r\n\r\n`, `id: 1\n${tidy}`],
    ['line ends of the old Mac', `data: ${result}\r\r`, tidy],
    ['a byte order mark', `\uFEFF${tidy}`, tidy],
    ['a byte order mark in the data', `data: \uFEFF${result}\n\n`, tidy],
    ['a message in several lines', 'data: {"jsonrpc":"2.0",\ndata: "id":1,"result":\ndata: {"a":"é"}}\n\n', tidy],
    ['nulls', `data: {"jsonrpc":"2.0","id":1,"result":{"a":"é","_meta":null},"error":null}\n\n`, tidy],
    ['an end without an empty line', `data: ${result}`, tidy],
    ['comments, blank data and other fields', `: hi\nretry: 5\nid: 1\ndata:\n\n`, ': hi\nretry: 5\nid: 1\ndata: \n\n'],
    ['what is not JSON', 'data: [DONE]\n\n', 'data: [DONE]\n\n'],
  ])('have %s', async (_what, given, is) => {
    expect((await pass(given, size)).replace(/\n+$/, '\n\n')).toBe(is);
  });
});
