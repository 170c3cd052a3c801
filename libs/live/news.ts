import { z } from 'zod';
import type { StoredEvent } from '#domain';
import type { Commit } from '#event-store';
import { isLargeJson } from '#platform';
import { framePage, type FramedPage, type RenderEntry } from './framed-page.ts';

/**
 * The entries of one or more commits, which travel with a wake-up (docs/adr/0039). A hub whose readers have everything up to
 * `fromVersion` delivers them without a read. Like a wake-up, they can be lost, late or repeated.
 */
export interface News {
  /** The version of the stream before the commits, and after them. */
  fromVersion: number;
  version: number;
  /** The id of the last event. */
  eventId: string;
  /** Whether no Run is active. */
  idle: boolean;
  /** The events that `ThreadStore.readLogPage` returns, as JSON, without the brackets of the array. */
  readonly events: string;
}

/** The highest version of a stream, whose column is an `integer`. */
export const MAX_VERSION = 2 ** 31 - 1;

/** UTF-16 units of `events`. Larger entries are read. */
const MAX_LENGTH = 8 * 1024;

/** Returns the entries of a commit; undefined if they are too large. */
export function newsOf({ before, after, events }: Pick<Commit, 'before' | 'after' | 'events'>): News | undefined {
  const texts: string[] = [];
  for (const event of events) {
    if (!event.public && event.type !== 'tool.confirmation_decided') continue;
    const shown = withoutPrivate(event);
    if (isLargeJson(shown)) return undefined;
    texts.push(JSON.stringify(shown, inOrderOfJsonb));
  }
  const idle = !('runs' in after.state) || after.state.runs.length === 0;
  const ends = { fromVersion: before.version, version: after.version, eventId: after.lastEventId ?? '', idle };
  return limited({ ...ends, events: texts.join(',') });
}

/** The result of a tool and causes of failures are not shown. */
function withoutPrivate(event: StoredEvent): object {
  if (event.type !== 'tool.completed' && event.type !== 'run.failed') return event;
  return { ...event, data: { ...event.data, result: undefined, cause: undefined } };
}

/**
 * Orders the fields of objects as `jsonb` does, by length and then by bytes. So an entry is the same text whether it is read or
 * travels. https://www.postgresql.org/docs/15/datatype-json.html
 */
function inOrderOfJsonb(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const fields = Object.entries(value).map(([name, field]) => ({
    name,
    bytes: Buffer.from(name),
    field: field as unknown,
  }));
  fields.sort((a, b) => a.bytes.length - b.bytes.length || Buffer.compare(a.bytes, b.bytes));
  return Object.fromEntries(fields.map(({ name, field }) => [name, field]));
}

/** Returns the entries of both; undefined if the second do not follow the first, or both are too large. */
export function joined(first: News, second: News): News | undefined {
  if (second.fromVersion !== first.version) return undefined;
  const events = [first.events, second.events].filter((text) => text !== '').join(',');
  return limited({ ...second, fromVersion: first.fromVersion, events });
}

const limited = (news: News): News | undefined => (news.events.length > MAX_LENGTH ? undefined : news);

/** The form of entries in a message between processes. It has no space, and older releases ignore it. */
const NEWS = /^([0-9A-Z]{26}):(\d{1,10})\/(\d{1,10})\/([0-9A-Z]{26})\/([01])\/([\w-]*)$/;

export function encodeNews(threadId: string, { version, fromVersion, eventId, idle, events }: News): string {
  const ends = [fromVersion, eventId, idle ? 1 : 0].join('/');
  return `${threadId}:${version}/${ends}/${Buffer.from(events).toString('base64url')}`;
}

/** Returns the Thread and its entries; null if the text has another form. */
export function decodeNews(text: string): { threadId: string; news: News } | null {
  const [, threadId, version, fromVersion, eventId, idle, events] = NEWS.exec(text) ?? [];
  if (threadId === undefined || Number(version) > MAX_VERSION) return null;
  const news = {
    fromVersion: Number(fromVersion),
    version: Number(version),
    eventId: eventId!,
    idle: idle === '1',
    // Only if a reader needs them, because every process receives the entries of all Threads.
    get events() {
      return Buffer.from(events!, 'base64url').toString();
    },
  };
  return { threadId, news };
}

/** The fields of an event that decide where it is delivered. Its data was checked by the process that stored it. */
const EVENTS = z.array(
  z.looseObject({ threadId: z.string(), version: z.int(), id: z.string(), type: z.string(), data: z.looseObject({}) }),
);

/** Returns the entries as a page of the Thread's log; null if they are no entries of it, or not of these versions. */
export function pageOf(threadId: string, news: News, render: RenderEntry): FramedPage | null {
  let json: unknown;
  try {
    json = JSON.parse(`[${news.events}]`);
  } catch {
    return null;
  }
  const events = EVENTS.safeParse(json);
  const { fromVersion, version, eventId, idle } = news;
  const isOfNews = (event: { threadId: string; version: number }): boolean =>
    event.threadId === threadId && event.version > fromVersion && event.version <= version;
  if (!events.success || !events.data.every(isOfNews)) return null;
  return framePage({ events: json as StoredEvent[], end: { version, eventId, idle } }, render);
}
