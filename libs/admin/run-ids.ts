import { encodeTime } from 'ulid';

/**
 * How far the time in a Run's id may be from its creation, milliseconds: the id is made by one pod before the append, and the
 * event's time is never before that of the event before it, which another pod may have written by another clock.
 */
const SLACK_MS = 60_000;

/** No Run of an id below this was created at that time or later. */
export function firstRunIdSince(time: string): string {
  return `${encodeTime(Math.max(0, Date.parse(time) - SLACK_MS))}${'0'.repeat(16)}`;
}
