import type { Pool, PoolClient } from 'pg';
import type { AppendHook } from '#event-store';
import { newId, queryTimeout, transact, type Queryable } from '#platform';

/** Who changes something. */
export interface Actor {
  /** An operator token, or somebody on a machine that reaches the database. */
  kind: 'operator' | 'local';
  /** Id of the token; of a local one user and host. */
  id: string;
  name: string;
}

export interface Change {
  /** What was changed and how, such as `token.revoked`. */
  action: string;
  targetId?: string | null;
  organizationId?: string | null;
  /** How exactly; never a secret. */
  details?: Record<string, unknown>;
}

/** Adds a change to the entries of the transaction. */
export type Note = (change: Change) => void;

/**
 * Makes changes in one transaction with their entries in the audit log: neither is ever there without the other. What notes
 * nothing has changed nothing. Throws what the work throws, and DatabaseUnavailable: then it may have been committed.
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
 * Has others who change the row wait until the end of the transaction: what is read after this stays so, and the entries do
 * not tell another's change as the actor's own.
 */
export async function lockRow(
  client: PoolClient,
  table: 'organizations' | 'people' | 'tokens' | 'agents',
  id: string,
): Promise<void> {
  await client.query(`select from ${table} where id = $1 for no key update`, [id]);
}

/** Returns the hook that writes the entry in the transaction of an append. If nothing is appended, there is no entry. */
export function auditHook(actor: Actor, change: Change): AppendHook<never> {
  return {
    after: async (client, _append, timeoutMs) => {
      await writeEntry(client, actor, change, timeoutMs);
      return null;
    },
  };
}

/**
 * Writes an entry. A change that cannot share a transaction with its entry, such as a pause of the queue, writes the entry first,
 * so that nothing is done without an entry.
 */
export async function writeEntry(database: Queryable, actor: Actor, change: Change, timeoutMs?: number): Promise<void> {
  const { action, targetId = null, organizationId = null, details = {} } = change;
  const values = [newId(), actor.kind, actor.id, actor.name, action, targetId, organizationId, JSON.stringify(details)];
  const text = `insert into audit_entries (id, actor_kind, actor_id, actor_name, action, target_id, organization_id, details)
                values ($1, $2, $3, $4, $5, $6, $7, $8)`;
  await database.query({ text, values, ...queryTimeout(timeoutMs) });
}
