import { refusal, ScriptedService, STREAM, useFastTime, type Asked, type Scripted } from './service.testing.ts';
import { ThreadStore } from './thread-store.ts';
import type { LogEntry } from './types.ts';

beforeEach(useFastTime);
afterEach(() => void jest.useRealTimers());

const tick = (ms = 1): Promise<void> => jest.advanceTimersByTimeAsync(ms);
/** Longer than the time in which a hidden page shows new entries. */
const FRAME_MS = 300;

const idOf = (n: number): string => `01J${String(n).padStart(23, '0')}`;
const message = (n: number, text: string) => ({
  ...{ id: idOf(n), role: 'user', runId: `R${n}`, createdAt: '2026-11-27T00:00:00.000Z' },
  parts: [{ type: 'text', text, state: 'done' }],
});
const entry = (n: number, type: string, more: object = {}) =>
  ({
    ...{ id: idOf(n), type, occurredAt: '2026-11-27T00:00:00.000Z', runId: 'R1', status: 'available', content: '' },
    ...more,
  }) as LogEntry;

/** Answers pages of messages, and streams whose entries the test sends. */
class LiveService extends ScriptedService {
  readonly streams: { after: string; send: (...entries: LogEntry[]) => void }[] = [];

  constructor(pages: Scripted[]) {
    super((asked) => (asked.url.pathname.endsWith('/stream') ? this.openStream(asked) : pages.shift()!));
  }

  get open(): boolean[] {
    const streams = this.asked.filter(({ url }) => url.pathname.endsWith('/stream'));
    return streams.map(({ signal }) => !signal!.aborted);
  }

  private openStream({ headers, signal }: Asked): Scripted {
    const after = headers.get('last-event-id')!;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const send = (...entries: LogEntry[]): void => {
          const frames = entries.map(
            (each) => `event: thread.event\nid: ${each.id}\ndata: ${JSON.stringify(each)}\n\n`,
          );
          controller.enqueue(new TextEncoder().encode(frames.join('')));
        };
        this.streams.push({ after, send });
        signal?.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return { headers: { ...STREAM, 'spool-last-event-id': after }, body };
  }
}

const page = (messages: object[], nextCursor: string | null = null, last = 9): Scripted => ({
  body: JSON.stringify({ messages, nextCursor, lastEventId: idOf(last) }),
});
const answer = (run: string, text: string, status = 'running') => ({
  ...{ id: run, role: 'agent', runId: run, createdAt: '2026-11-27T00:00:00.000Z', status, error: null },
  parts: [{ type: 'text', text, state: 'streaming', stepId: 'S' }],
});

/** Subscribes, and counts how often it was told. */
function watch(store: ThreadStore): { leave: () => void; told: () => number } {
  let told = 0;
  return { leave: store.subscribe(() => told++), told: () => told };
}

async function opened(...pages: Scripted[]) {
  const service = new LiveService(pages);
  const store = new ThreadStore(service.client().thread('T'));
  const watcher = watch(store);
  await tick();
  return { service, store, watcher };
}

test('a page, then its stream: several entries are shown together, and what they did not change stays the same object', async () => {
  const { service, store, watcher } = await opened(
    page([answer('R0', 'Before', 'completed'), message(1, 'Hello')], 'older'),
  );
  const before = store.getView();
  expect(before).toMatchObject({
    status: 'live',
    caughtUp: true,
    hasEarlier: true,
    run: { id: 'R1', status: 'queued' },
  });
  expect(service.streams[0]!.after).toBe(idOf(9));
  const told = watcher.told();
  service.streams[0]!.send(
    entry(10, 'run.started'),
    entry(11, 'agent.message.delta', { content: 'Hi, ', stepId: 'S' }),
    entry(12, 'agent.message.delta', { content: 'you.', stepId: 'S' }),
    entry(13, 'usage.updated', { content: '{"inputTokens":3,"outputTokens":2}' }),
    entry(14, 'tool.confirmation.required', {
      content: 'Q',
      toolCallId: 'C',
      toolName: 'send',
      toolInput: { to: 'me' },
    }),
  );
  await tick(FRAME_MS);
  expect(watcher.told() - told).toBe(1);
  const { messages, run, questions, usage } = store.getView();
  expect(messages[1]).toBe(before.messages[1]);
  expect(messages[2]).toMatchObject({
    role: 'agent',
    parts: [{ text: 'Hi, you.', state: 'done' }, { state: 'waiting' }],
  });
  expect(run).toEqual({ id: 'R1', status: 'waiting_input' });
  expect(questions).toEqual([
    { requestId: 'Q', runId: 'R1', toolCallId: 'C', toolName: 'send', title: null, toolInput: { to: 'me' } },
  ]);
  expect(usage).toEqual({ inputTokens: 3, outputTokens: 2 });
  service.streams[0]!.send(entry(15, 'session.status', { content: 'RUNNING' }));
  await tick(FRAME_MS);
  expect(store.getView().questions).toBe(questions);
  service.streams[0]!.send(entry(16, 'session.status', { content: 'decided', requestId: 'Q', decision: 'allow_once' }));
  await tick(FRAME_MS);
  expect(store.getView()).toMatchObject({ run: { status: 'running' }, questions: [] });
  watcher.leave();
});

test('all subscribers share a stream, which stays for a second, ends with the last one and resumes', async () => {
  const { service, store, watcher } = await opened(page([message(1, 'Hello')]));
  const second = watch(store);
  watcher.leave();
  await tick(2_000);
  second.leave();
  await tick(900);
  const third = watch(store);
  await tick(2_000);
  expect(service.open).toEqual([true]);
  service.streams[0]!.send(entry(10, 'run.started'));
  await tick(FRAME_MS);
  third.leave();
  await tick(1_100);
  expect(service.open).toEqual([false]);
  const { messages } = store.getView();
  const fourth = watch(store);
  await tick();
  expect([service.streams[1]!.after, store.getView().messages]).toEqual([idOf(10), messages]);
  expect(service.asked.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET']);
  fourth.leave();
});

test('earlier messages come before the others, once', async () => {
  const { service, store, watcher } = await opened(
    page([answer('R0', 'Later', 'completed')], 'older'),
    page([message(1, 'Earlier')]),
  );
  await Promise.all([store.loadEarlier(), store.loadEarlier()]);
  await store.loadEarlier();
  const { messages, hasEarlier } = store.getView();
  expect([messages.map(({ id }) => id), hasEarlier]).toEqual([[idOf(1), 'R0'], false]);
  expect(service.asked.filter(({ url }) => url.searchParams.get('before') === 'older')).toHaveLength(1);
  watcher.leave();
});

test('says why it cannot open yet, and goes on when it can; a refusal is final', async () => {
  const { store, watcher } = await opened(refusal(503, 'internal_error'), page([message(1, 'Hello')]));
  expect(store.getView()).toMatchObject({ status: 'reconnecting', error: { status: 503 }, caughtUp: false });
  await tick(1_000);
  expect(store.getView()).toMatchObject({ status: 'live', error: null, caughtUp: true });
  watcher.leave();
  const gone = await opened(refusal(404, 'not_found'));
  expect(gone.store.getView()).toMatchObject({ status: 'ended', error: { code: 'not_found' } });
  await tick(60_000);
  expect(gone.service.asked).toHaveLength(1);
  gone.watcher.leave();
});

test('ends with the error of getToken if its status is final', async () => {
  const getToken = (): never => {
    throw Object.assign(new Error('The Agent is not published.'), { status: 409 });
  };
  const store = new ThreadStore(new LiveService([]).client({ getToken }).thread('T'));
  const watcher = watch(store);
  await tick();
  const error = { code: 'token_unavailable', status: 409, message: 'getToken failed: The Agent is not published.' };
  expect(store.getView()).toMatchObject({ status: 'ended', error });
  watcher.leave();
});

test('a message is being sent until the view shows its Run, and interrupt names this Run', async () => {
  const sent = { body: '{"events":[{"run":{"id":"R1"}}]}' };
  const { service, store, watcher } = await opened(page([]), sent, refusal(400, 'invalid_request'), sent);
  await store.interrupt();
  const sending = store.send('Hello');
  expect(store.getView()).toMatchObject({ isSending: true, isActive: false });
  await sending;
  expect(store.getView().isSending).toBe(true);
  service.streams[0]!.send(entry(10, 'user.message', { content: 'Hello' }));
  await tick(FRAME_MS);
  expect(store.getView()).toMatchObject({ isSending: false, isActive: true, run: { status: 'queued' } });
  await expect(store.send('')).rejects.toMatchObject({ code: 'invalid_request' });
  expect(store.getView().isSending).toBe(false);
  await store.interrupt();
  expect(JSON.parse(String(service.asked.at(-1)!.body))).toEqual({ events: [{ type: 'user_interrupt', runId: 'R1' }] });
  watcher.leave();
});

test('asks again for a refused Thread when somebody subscribes again', async () => {
  const { service, store, watcher } = await opened(refusal(403, 'forbidden'), page([message(1, 'Hello')]));
  expect(store.getView().status).toBe('ended');
  watcher.leave();
  const again = watch(store);
  await tick();
  expect([store.getView().status, service.asked.length]).toEqual(['live', 3]);
  again.leave();
});

test('shows the active Run once, although a whole page of messages waits behind it', async () => {
  const { service, store, watcher } = await opened(
    page([message(3, 'Third')], 'older'),
    // The service has written entry 10 between the two pages.
    page([message(1, 'First'), answer('R1', 'Hello '), message(2, 'Second')], null, 10),
  );
  const delta = (n: number, content: string) => entry(n, 'agent.message.delta', { content, stepId: 'S' });
  expect(store.getView().run).toEqual({ id: 'R1', status: 'running' });
  service.streams[0]!.send(delta(10, 'Hello '), delta(11, 'world'), entry(12, 'run.completed'));
  await tick(FRAME_MS);
  const { messages, run } = store.getView();
  expect(messages.map(({ id }) => id)).toEqual([idOf(1), 'R1', idOf(2), idOf(3)]);
  expect(messages[1]).toMatchObject({ status: 'completed', parts: [{ text: 'Hello world' }] });
  expect([service.streams[0]!.after, run]).toEqual([idOf(9), { id: 'R2', status: 'queued' }]);
  watcher.leave();
});

test('shows new entries although the page was hidden before its next frame', async () => {
  const frames = jest.fn();
  Object.assign(globalThis, { requestAnimationFrame: frames });
  try {
    const { service, store, watcher } = await opened(page([]));
    service.streams[0]!.send(entry(10, 'run.started'));
    await tick(FRAME_MS);
    expect([frames.mock.calls.length, store.getView().messages.length]).toEqual([1, 1]);
    watcher.leave();
  } finally {
    Reflect.deleteProperty(globalThis, 'requestAnimationFrame');
  }
});
