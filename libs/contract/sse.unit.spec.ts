import { EventSourceParserStream } from 'eventsource-parser/stream';
import { connectedFrame, KEEPALIVE_FRAME, threadErrorFrame, threadEventFrame, THREAD_IDLE_FRAME } from './index.ts';

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

it('makes frames that a reader of event streams understands', async () => {
  const error = { error: { code: 'not_found', message: 'gone' } } as const;
  const frames = [
    connectedFrame(1500),
    threadEventFrame(entry),
    KEEPALIVE_FRAME,
    threadErrorFrame(error),
    THREAD_IDLE_FRAME,
  ];
  const retries: number[] = [];
  const comments: string[] = [];
  const events = new Blob([frames.join('')])
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
  expect([retries, comments]).toEqual([[1500], ['connected', 'keepalive']]);
});
