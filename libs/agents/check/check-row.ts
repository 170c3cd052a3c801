import { types } from 'node:util';
import type { HarnessError } from '../harness.ts';

/** One thing that `spool agent check` has looked at. */
export interface CheckRow {
  /** What was looked at: `text`, `parallel tools`, `tool server files`. */
  check: string;
  state: 'works' | 'does not work' | 'not known';
  /** What was found, or why it does not work, in plain words. Never a secret. */
  detail: string;
  /** Whether the agent would not run if this does not work. */
  needed: boolean;
}

const MAX_CAUSES = 5;
/** UTF-16 units. */
const MAX_TEXT = 500;

export const works = (check: string, detail: string): CheckRow => ({ check, state: 'works', detail, needed: false });

export const fails = (check: string, detail: string, needed = false): CheckRow => ({
  check,
  state: 'does not work',
  detail,
  needed,
});

export const unknown = (check: string, detail: string): CheckRow => ({
  check,
  state: 'not known',
  detail,
  needed: false,
});

/** Returns what a failure says to operators: its code's message, and the causes as the log has them. */
export function reasonOf(error: HarnessError): string {
  return [error.message, causeOf(error)].filter((text) => text !== '').join(' ');
}

/** Returns the messages of the causes alone, empty if there are none. They hold no secrets, as those of the log. */
export function causeOf({ cause }: HarnessError): string {
  const messages: string[] = [];
  // Not by `instanceof`: under Jest those of Node have another class Error.
  for (let next = cause; types.isNativeError(next) && messages.length < MAX_CAUSES; next = next.cause)
    if (!messages.includes(next.message)) messages.push(next.message);
  return messages
    .filter((message) => message !== '')
    .join(' ')
    .slice(0, MAX_TEXT);
}
