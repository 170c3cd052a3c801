import type { ClientBase } from 'pg';
import { inTransaction } from '#platform';

// Times as text are read as UTC, independent of the server's setting.
const UTC = `set local timezone = 'UTC'`;

/** Runs the work in a transaction whose reads share one snapshot. */
export function inSnapshot<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  return inTransaction(client, work, {
    settings: `set transaction isolation level repeatable read, read only; ${UTC}`,
  });
}

/** Runs the work in a transaction whose statements each see the latest commits, so that reads after a lock are current. */
export function behindLocks<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  return inTransaction(client, work, { settings: `set transaction isolation level read committed; ${UTC}` });
}
