import { encodeTime } from 'ulid';

/**
 * The largest difference between the time in a Run's id and its creation, milliseconds. One process creates the id before the
 * append. The event's time is at least that of the previous event, possibly from the clock of another process.
 */
const SLACK_MS = 60_000;

/** Returns a lower bound for the ids of the Runs created at that time or later. */
export function firstRunIdSince(time: string): string {
  return `${encodeTime(Math.max(0, Date.parse(time) - SLACK_MS))}${'0'.repeat(16)}`;
}
