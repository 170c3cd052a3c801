import type { UnknownEvent } from '#domain';
import { framePage, framesAfter } from './framed-page.ts';

const at = '2026-01-01T00:00:00.000Z';
const event = (version: number, type: string, data: object): UnknownEvent => ({
  ...{ threadId: 'T', version, id: `ID${version}`, occurredAt: at, schemaVersion: 1, public: true },
  ...{ type, data, runId: null, attempt: null },
});
const render = ({ id, content }: { id: string; content: string }): string => `${id} ${content};`;

const page = framePage(
  {
    events: [
      event(3, 'assistant.text_added', { text: 'é😀' }),
      // Public when it was stored, but not shown by this version.
      event(4, 'thread.created', {}),
      event(6, 'assistant.text_added', { text: 'b' }),
    ],
    end: null,
  },
  render,
);

it('renders all entries into one buffer and returns the last id and version', () => {
  expect(page.framesOf(false).frames.toString()).toBe('ID3 é😀;ID6 b;');
  expect(page).toMatchObject({ lastId: 'ID6', lastVersion: 6, end: null });
});

it.each([
  ['', 'ID3 é😀;ID6 b;'],
  ['ID3', 'ID6 b;'],
  ['ID4', 'ID6 b;'],
  ['ID6', ''],
])('returns the frames after id %j', (id, frames) => {
  expect(framesAfter(page.framesOf(false), id).bytes.toString()).toBe(frames);
});

it('returns no frames for an empty page', () => {
  const end = { version: 3, eventId: 'ID3', idle: true };
  const empty = framePage({ events: [], end }, render);
  expect(empty).toMatchObject({ lastId: '', lastVersion: 0, end });
  expect(framesAfter(empty.framesOf(false), '')).toMatchObject({ bytes: { length: 0 }, entries: 0 });
});

it('renders plain and extended entries once each, and only on demand', () => {
  const rendered: string[] = [];
  const events = [{ ...event(3, 'assistant.text_added', { text: 'a', step: 2 }), runId: 'A', attempt: 1 }];
  const lazy = framePage({ events, end: null }, (entry) => {
    rendered.push('stepId' in entry ? 'extended' : 'plain');
    return JSON.stringify(entry);
  });
  expect(rendered).toEqual([]);
  expect(lazy.framesOf(false)).toBe(lazy.framesOf(false));
  expect(rendered).toEqual(['plain']);
  expect(lazy.framesOf(true)).toBe(lazy.framesOf(true));
  expect(rendered).toEqual(['plain', 'extended']);
  expect(JSON.parse(String(lazy.framesOf(true).frames))).toMatchObject({ content: 'a', stepId: 'A-1-2' });
  expect(JSON.parse(String(lazy.framesOf(false).frames))).not.toHaveProperty('stepId');
});
