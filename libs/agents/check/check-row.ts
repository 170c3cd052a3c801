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

const MAX_CAUSE = 500;

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

/** Returns what a failure says to operators: its code's message, and the cause as the log has it. */
export function reasonOf({ message, cause }: HarnessError): string {
  return cause instanceof Error ? `${message} ${cause.message.slice(0, MAX_CAUSE)}` : message;
}
