import type { Pool } from 'pg';
import type { CreateThread } from '#domain';
import type { CommandResult } from '#event-store';
import { namedStatement } from '#platform';
import { ApiError, threadContended } from './http-errors.ts';

const FIND_REFERENCE = namedStatement(import.meta.dirname, 'queries/find-reference.sql');

/** Milliseconds. The query is by key, so one that takes longer has lost its connection. */
const LIMIT = { query_timeout: 5_000 };

/** A further try needs yet another Thread with the same reference to be created and deleted meanwhile. */
const TRIES = 3;

/** Callers' own references for Threads, unique per token, Agent and user. The append itself refuses a duplicate. */
export class ExternalRefs {
  constructor(private readonly pool: Pool) {}

  /**
   * Creates the Thread. Tries again if the Thread that had its reference was deleted meanwhile. Throws ApiError
   * `reference_taken` if the reference is in use, and names the Thread that has it.
   */
  async orRefuse(created: CreateThread, create: () => Promise<CommandResult<never>>): Promise<CommandResult<never>> {
    const { agentId, userId, externalRef } = created;
    for (let tries = 0; tries < TRIES; tries++) {
      const result = await create();
      if (result.outcome !== 'refused' || externalRef === undefined) return result;
      const values = [externalRef.tokenId, agentId, userId, externalRef.value];
      const { rows } = await this.pool.query<{ threadId: string }>({ ...FIND_REFERENCE, ...LIMIT, values });
      if (rows[0] === undefined) continue;
      throw new ApiError('reference_taken', `The externalRef is already used by Thread ${rows[0].threadId}.`);
    }
    throw threadContended();
  }
}

/** The references of a new Thread. `client_external_ref`, the older name, is not unique; if both are given, they are equal. */
export function referencesOf(
  { externalRef, client_external_ref }: { externalRef?: string | undefined; client_external_ref?: string | undefined },
  tokenId: string,
): Pick<CreateThread, 'externalRef' | 'clientExternalRef'> {
  if (externalRef === undefined) return { clientExternalRef: client_external_ref };
  return { externalRef: { value: externalRef, tokenId } };
}
