import type { Pool } from 'pg';
import { mayAttribute, ownerFor, type Caller } from '#access';
import type { ThreadOwner } from '#domain';
import { BY_KEY, namedStatement } from '#platform';
import { ApiError } from './http/http-errors.ts';

const FIND_MEMBER = namedStatement(import.meta.dirname, 'queries/find-member.sql');

/**
 * The owners of Threads that a service token creates for a person (docs/spec/agent-threads-api.md#authentication;
 * docs/api/compatibility.md).
 */
export class Attribution {
  constructor(private readonly pool: Pool) {}

  /** Checks whether the caller may attribute; part of the access checks. Throws ApiError `forbidden`. */
  refuseUnlessAllowed(caller: Caller, personId: string | undefined): void {
    if (personId === undefined || mayAttribute(caller)) return;
    throw new ApiError('attribution_forbidden', 'The caller cannot create Threads for a person.');
  }

  /** Returns the owner of the new Thread. Throws the same `invalid_request` for an unknown person and for a non-member. */
  async ownerOf(caller: Caller, personId: string | undefined): Promise<ThreadOwner> {
    if (personId === undefined || !mayAttribute(caller)) return ownerFor(caller);
    const { rows } = await this.pool.query({ ...FIND_MEMBER, ...BY_KEY, values: [caller.organizationId, personId] });
    if (rows.length > 0) return ownerFor(caller, personId);
    throw new ApiError('attributed_user_unknown', 'body.attributed_user_id: must be a member of the organization');
  }
}
