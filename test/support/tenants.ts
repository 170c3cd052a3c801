import type { Pool } from 'pg';
import { encodeTime } from 'ulid';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import { copyThread } from '#testing';
import { createAcknowledged, type Caller } from './client.ts';

/** An organization, with a person who speaks to its one agent. */
export interface Tenant extends Caller {
  organizationId: string;
}

/** Adds an organization with one echo agent and a person. */
export async function addTenant(
  pool: Pool,
  baseUrl: string,
  name: string,
  more: Partial<AgentManifestInput> = {},
): Promise<Tenant> {
  const access = new AccessStore(pool);
  const organizationId = await access.createOrganization(name);
  const personId = await access.createPerson(name);
  await access.addMember(organizationId, personId);
  const manifest: AgentManifestInput = { name: 'echo', harness: { name: 'echo', pauseMs: 0 }, ...more };
  const agentId = await createAgent(pool, { organizationId, ownerPersonId: personId, manifest });
  await publishAgentVersion(pool, agentId, manifest);
  const { token } = await access.mintToken({ kind: 'person', personId, name });
  return { baseUrl, token, agentId, organizationId };
}

/**
 * Adds a ready Run of each length, milliseconds up to 99,999, as copies of one that the tenant starts. Takes some seconds for
 * 10,000. The queue must be paused, so that the first one is still ready when it is copied.
 */
export async function addReadyRuns(pool: Pool, tenant: Tenant, lengths: readonly number[]): Promise<void> {
  const digits = '00000000';
  const { threadId, runId } = await createAcknowledged(tenant, `/think ${digits}ms`);
  // The number of a copy is in its text; its ids differ by their time.
  const now = Date.now();
  await copyThread(
    pool,
    { threadId, runIds: [runId], agentId: tenant.agentId, digits },
    {
      numbers: [...lengths],
      ages: lengths.map(() => 0),
      times: lengths.map((_, i) => encodeTime(now - 1_000_000 - i)),
      agentIds: [tenant.agentId],
    },
  );
  // The echo agent takes a number of six digits at most.
  await pool.query(
    `update events set data = replace(data::text, '/think 000', '/think ')::jsonb
     where type = 'message.added' and thread_id in (select thread_id from thread_summaries where organization_id = $1)`,
    [tenant.organizationId],
  );
  // Threads are titled by their first message.
  await pool.query(
    `update thread_summaries set title = replace(title, '/think 000', '/think ') where organization_id = $1`,
    [tenant.organizationId],
  );
  // The copies became ready at the same moment, in the order of their lengths. They are to start in the given order.
  await pool.query(
    `update run_work set since = since + place * interval '1 microsecond'
     from (select thread_id, row_number() over (order by thread_id desc) as place
           from run_work where organization_id = $1) as placed
     where run_work.thread_id = placed.thread_id`,
    [tenant.organizationId],
  );
  await pool.query('vacuum analyze run_work');
}
