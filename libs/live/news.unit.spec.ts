import { initialState, type LogEntry, type StoredEvent } from '#domain';
import { noSummaries } from '#projections';
import { decodeNews, encodeNews, joined, newsOf, pageOf, type News } from './news.ts';

const T = '01ARZ3NDEKTSV4RRFFQ69G5FA1';
const render = (entry: LogEntry): string => `${JSON.stringify(entry)}\n`;

const thread = (version: number) => ({
  ...{ threadId: T, version, lastEventId: idOf(version), lastOccurredAt: null },
  ...{ state: initialState, summaries: noSummaries },
});

const idOf = (version: number): string => String(version).padStart(26, '0');

function event(version: number, type: string, data: object, isPublic = true): StoredEvent {
  const run = { runId: T, attempt: 1, schemaVersion: 1, occurredAt: '2026-11-28T12:00:00.000Z' };
  return { threadId: T, version, id: idOf(version), type, data, public: isPublic, ...run } as StoredEvent;
}

const delta = (version: number, text = 'some text') => event(version, 'assistant.text_added', { text });

const commit = (...events: StoredEvent[]) => {
  const first = events[0]!.version;
  return newsOf({ before: thread(first - 1), after: thread(first - 1 + events.length), events });
};

const idsIn = (news: News): string[] => (JSON.parse(`[${news.events}]`) as StoredEvent[]).map(({ id }) => id);

test('news have the public events and the decisions of a commit', () => {
  const decision = event(3, 'tool.confirmation_decided', { requestId: 'r', decision: 'allow_once' }, false);
  const news = commit(delta(1), event(2, 'run.claimed', {}, false), decision)!;
  expect(news).toMatchObject({ fromVersion: 0, version: 3, eventId: idOf(3), idle: true });
  expect(idsIn(news)).toEqual([idOf(1), idOf(3)]);
});

test('news never have the result of a tool, or the cause of a failure', () => {
  const cause = { source: 'provider', name: 'secret' };
  const completed = { toolCallId: 'c', toolName: 't', outcome: 'ok', summary: 's', result: 'secret', cause };
  const failed = { error: { code: 'internal', message: 'm', retryable: false }, durationMs: 1, cause };
  const { events } = commit(event(1, 'tool.completed', completed), event(2, 'run.failed', failed))!;
  expect(events).toContain('"internal"');
  expect(events).not.toContain('secret');
});

test('news have the fields of objects in the order of jsonb', () => {
  const toolInput = { number: 1, note: 'Note', list: [{ bb: 1, a: 2 }], ü: 1, zz: 1, z: 1 };
  const { events } = commit(event(1, 'tool.started', { toolCallId: 'c', toolInput }))!;
  expect(events).toContain('"toolInput":{"z":1,"zz":1,"ü":1,"list":[{"a":2,"bb":1}],"note":"Note","number":1}');
});

test('commits with more than 8 Ki characters have no news', () => {
  expect(commit(delta(1, 'x'.repeat(7_000)))).toBeDefined();
  expect(commit(delta(1, 'x'.repeat(8_192)))).toBeUndefined();
  expect(commit(delta(1, 'x'.repeat(5_000)), delta(2, 'x'.repeat(5_000)))).toBeUndefined();
});

test('news are joined if the second follow the first and both fit', () => {
  const [first, second, third] = [commit(delta(1))!, commit(delta(2), delta(3))!, commit(delta(5))!];
  const both = joined(first, second)!;
  expect(both).toMatchObject({ fromVersion: 0, version: 3 });
  expect(idsIn(both)).toEqual([idOf(1), idOf(2), idOf(3)]);
  expect(joined(both, third)).toBeUndefined();
  expect(joined(commit(delta(1, 'x'.repeat(5_000)))!, commit(delta(2, 'x'.repeat(5_000)))!)).toBeUndefined();
  const silent = commit(event(2, 'run.claimed', {}, false))!;
  expect(idsIn(joined(first, silent)!)).toEqual([idOf(1)]);
});

test('news survive their way between processes, as one word', () => {
  const news = commit(delta(1, 'two words, “ü” and 😀\n'))!;
  const text = encodeNews(T, news);
  expect(text).not.toMatch(/\s/);
  expect(decodeNews(text)).toEqual({ threadId: T, news });
  expect(decodeNews(`${T}:1`)).toBeNull();
});

test('a page has the entries of the news', () => {
  const page = pageOf(T, commit(delta(1, 'hello'), delta(2))!, render)!;
  expect(page).toMatchObject({ lastId: idOf(2), lastVersion: 2, end: { version: 2, eventId: idOf(2), idle: true } });
  const { frames, starts } = page.framesOf(false);
  expect(starts.map(({ id }) => id)).toEqual([idOf(1), idOf(2)]);
  expect(frames.toString()).toContain('hello');
});

test.each([
  ['text that is not JSON', '{'],
  ['events of another Thread', JSON.stringify({ ...delta(1), threadId: 'other' })],
  ['values that are no events', '1'],
  ['an event of another version', JSON.stringify(delta(2))],
])('%s makes no page', (_, events) => {
  expect(pageOf(T, { ...commit(delta(1))!, events }, render)).toBeNull();
});

test('a version that no stream can have is no news', () => {
  const text = encodeNews(T, { ...commit(delta(1))!, version: 2 ** 31 });
  expect(decodeNews(text)).toBeNull();
});
