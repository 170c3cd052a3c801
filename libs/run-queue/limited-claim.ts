import type { AppendHook, RunJob } from '#event-store';
import { namedStatement, queryTimeout } from '#platform';

const LOCK_LIMITS = namedStatement(import.meta.dirname, 'lock-limits.sql');
const REFUSE_BEYOND_LIMITS = namedStatement(import.meta.dirname, 'refuse-beyond-limits.sql');

/** A claim that the concurrency limits of its agent or organization can refuse. */
export interface LimitedClaim extends RunJob {
  organizationId: string;
  agentId: string;
  /** The ids of the organization and the agent, in this order, if they have a limit. */
  limits: readonly string[];
  /** The limit of an organization that has no own limit; null for no limit. */
  organizationCap: number | null;
}

/**
 * Returns the hook that checks the limits under their locks before a claim. If there are too many claimed Runs, it marks the Run
 * as waiting for the limit.
 */
export function limitsHook(claim: LimitedClaim): AppendHook<'limited'> {
  const { runId, dispatch, organizationId, agentId, limits, organizationCap } = claim;
  return {
    lock: organizationId,
    countedAs: 'limited',
    before: async (client, timeoutMs) => {
      await client.query({ ...LOCK_LIMITS, ...queryTimeout(timeoutMs), values: [limits] });
      const values = [runId, organizationId, agentId, dispatch, organizationCap];
      const statement = { ...REFUSE_BEYOND_LIMITS, ...queryTimeout(timeoutMs), values };
      const { rows } = await client.query<{ limitedBy: string | null }>(statement);
      return (rows[0]?.limitedBy ?? null) === null ? null : 'limited';
    },
  };
}
