import type { ClientBase } from 'pg';
import { inTransaction } from '#platform';

// Times as text are read as UTC, whatever the server's setting.
const UTC = `set local timezone = 'UTC'`;

/** Runs the work in a transaction whose reads all see the same moment. */
export function inSnapshot<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  return inTransaction(client, work, {
    settings: `set transaction isolation level repeatable read, read only; ${UTC}`,
  });
}

/** Runs the work in a transaction whose statements see what is committed, to read behind locks. */
export function behindLocks<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  return inTransaction(client, work, { settings: `set transaction isolation level read committed; ${UTC}` });
}
