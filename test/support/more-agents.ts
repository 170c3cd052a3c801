import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import type { System } from './system.ts';

/** Another agent of the system's organization, published. */
export async function addAgent({ database, agentId }: System, manifest: AgentManifestInput): Promise<string> {
  type Owner = { organizationId: string; ownerPersonId: string };
  const { rows } = await database.pool.query<Owner>(
    `select organization_id as "organizationId", owner_person_id as "ownerPersonId" from agents where id = $1`,
    [agentId],
  );
  const added = await createAgent(database.pool, { ...rows[0]!, manifest });
  await publishAgentVersion(database.pool, added, manifest);
  return added;
}
