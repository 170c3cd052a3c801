import { getLines, getMessages, type EventSourceMessage } from '@microsoft/fetch-event-source/lib/cjs/parse.js';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { preamble, KEEPALIVE, threadErrorFrame, threadEventFrame, THREAD_IDLE_FRAME } from './index.ts';

const entry = {
  id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  type: 'agent.message.delta',
  occurredAt: '2026-11-21T00:00:00.000Z',
  runId: null,
  status: 'available',
  content: 'two\nlines, \r\n and \u2028 data: x\n\n',
  durationMs: null,
  tokens: null,
} as const;

const error = { error: { code: 'not_found', message: 'gone' } } as const;
const STREAM = [
  preamble(1500),
  threadEventFrame(entry),
  KEEPALIVE,
  KEEPALIVE,
  threadErrorFrame(error),
  KEEPALIVE,
  THREAD_IDLE_FRAME,
].join('');

it('makes frames that a reader of event streams understands', async () => {
  const retries: number[] = [];
  const comments: string[] = [];
  const events = new Blob([STREAM])
    .stream()
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(
      new EventSourceParserStream({
        onRetry: (ms) => retries.push(ms),
        onComment: (comment) => comments.push(comment),
      }),
    );
  const read = [];
  for await (const event of events) read.push(event);
  expect(read).toEqual([
    { event: 'thread.event', id: entry.id, data: JSON.stringify(entry) },
    { event: 'thread.error', id: undefined, data: JSON.stringify(error) },
    { event: 'thread.idle', id: undefined, data: '{}' },
  ]);
  expect([retries, comments]).toEqual([[1500], ['connected', 'keepalive', 'keepalive', 'keepalive']]);
});

it('gives @microsoft/fetch-event-source no empty message, however the bytes are chunked', () => {
  const bytes = Buffer.from(STREAM);
  for (const size of [1, 7, bytes.length]) {
    const messages: EventSourceMessage[] = [];
    const retries: number[] = [];
    const onMessage = (message: EventSourceMessage): unknown => messages.push(message);
    const read = getLines(
      getMessages(
        () => undefined,
        (ms) => retries.push(ms),
        onMessage,
      ),
    );
    for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size));
    expect(retries).toEqual([1500]);
    expect(messages.map(({ event, id, data }) => [event, id, JSON.parse(data) as unknown])).toEqual([
      ['thread.event', entry.id, entry],
      ['thread.error', '', error],
      ['thread.idle', '', {}],
    ]);
  }
});
