import type { Pool, PoolClient } from 'pg';
import type { AppendHook } from '#event-store';
import { newId, queryTimeout, transact, type Queryable } from '#platform';

/** The operator who changes something. */
export interface Actor {
  /** An operator token, or a user of a machine that reaches the database. */
  kind: 'operator' | 'local';
  /** The id of the token, or the local user and host. */
  id: string;
  name: string;
}

export interface Change {
  /** Name of the change, such as `token.revoked`. */
  action: string;
  targetId?: string | null;
  organizationId?: string | null;
  /** Never a secret. */
  details?: Record<string, unknown>;
}

/** Adds a change to the entries of the transaction. */
export type Note = (change: Change) => void;

/**
 * Makes changes and their audit entries in one transaction. Work that changes something must note it. Throws the error of the work,
 * and DatabaseUnavailable; then the transaction may have been committed.
 */
export function audited<T>(pool: Pool, actor: Actor, work: (client: PoolClient, note: Note) => Promise<T>): Promise<T> {
  return transact(pool, async (client) => {
    const changes: Change[] = [];
    const result = await work(client, (change) => void changes.push(change));
    for (const change of changes) await writeEntry(client, actor, change);
    return result;
  });
}

/**
 * Locks the row until the end of the transaction. What is read after this stays true, so audit entries do not attribute the change
 * of another operator to the actor.
 */
export async function lockRow(
  client: PoolClient,
  table: 'organizations' | 'people' | 'tokens' | 'agents',
  id: string,
): Promise<void> {
  await client.query(`select from ${table} where id = $1 for no key update`, [id]);
}

/**
 * Returns the hook that writes the entry in the transaction of an append, after `within`. If nothing is appended, there is no
 * entry, and `within` does not run.
 */
export function auditHook(
  actor: Actor,
  change: Change,
  within?: (client: PoolClient, timeoutMs?: number) => Promise<void>,
): AppendHook<never> {
  return {
    after: async (client, _append, timeoutMs) => {
      await within?.(client, timeoutMs);
      await writeEntry(client, actor, change, timeoutMs);
      return null;
    },
  };
}

/** Writes an entry. A change that cannot share a transaction with its entry writes the entry first, so that it has one. */
export async function writeEntry(database: Queryable, actor: Actor, change: Change, timeoutMs?: number): Promise<void> {
  const { action, targetId = null, organizationId = null, details = {} } = change;
  const values = [newId(), actor.kind, actor.id, actor.name, action, targetId, organizationId, JSON.stringify(details)];
  const text = `insert into audit_entries (id, actor_kind, actor_id, actor_name, action, target_id, organization_id, details)
                values ($1, $2, $3, $4, $5, $6, $7, $8)`;
  await database.query({ text, values, ...queryTimeout(timeoutMs) });
}
