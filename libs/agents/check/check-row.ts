import { chainedMessage } from '#platform';
import type { HarnessError } from '../harness.ts';

/** One row of `spool agent check`. */
export interface CheckRow {
  /** The name of the check, such as `text`, `parallel tools` or `tool server files`. */
  check: string;
  state: 'works' | 'does not work' | 'not known';
  /** What was found, or why it does not work, for operators. It never contains a secret. */
  detail: string;
  /** Whether the agent cannot run if this does not work. */
  needed: boolean;
}

/** UTF-16 units of all the causes' messages. */
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

/** Returns the text of a failure for operators: the message of its code, and those of its causes. */
export function reasonOf(error: HarnessError): string {
  return [error.message, causeOf(error)].filter((text) => text !== '').join(' ');
}

/** Returns the messages of the causes, or an empty string. They contain no secrets, because the log shows them too. */
export function causeOf({ cause }: HarnessError): string {
  return chainedMessage(cause).slice(0, MAX_TEXT);
}
