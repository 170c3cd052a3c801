import type { Pool } from 'pg';
import { namedStatement, newId, throwAway } from '#platform';
import { agentManifestSchema, type AgentManifestInput } from './manifest.ts';

const CREATE_AGENT = namedStatement(import.meta.dirname, 'create-agent.sql');
const PUBLISH_AGENT_VERSION = namedStatement(import.meta.dirname, 'publish-agent-version.sql');

export interface NewAgent {
  organizationId: string;
  ownerPersonId?: string | null;
  access?: 'organization' | 'invited';
  manifest: AgentManifestInput;
}

/** Makes an agent that is not published, named as the manifest says; answers its id. Throws ZodError, DatabaseAway. */
export async function createAgent(
  pool: Pool,
  { organizationId, ownerPersonId, access, manifest }: NewAgent,
): Promise<string> {
  const { name, description, kind } = agentManifestSchema.parse(manifest);
  const id = newId();
  const values = [id, organizationId, ownerPersonId ?? null, name, description, kind, access ?? 'organization'];
  await pool.query({ ...CREATE_AGENT, values }).catch(throwAway);
  return id;
}

/**
 * Stores the manifest, its defaults filled in, as the agent's next version, makes it the live one and publishes the
 * agent; answers the version's number, null when there is no such agent. Throws ZodError, DatabaseAway.
 */
export async function publishAgentVersion(
  pool: Pool,
  agentId: string,
  input: AgentManifestInput,
): Promise<number | null> {
  const manifest = agentManifestSchema.parse(input);
  const values = [agentId, JSON.stringify(manifest), manifest.name, manifest.description, manifest.kind];
  const { rows } = await pool.query<{ version: number }>({ ...PUBLISH_AGENT_VERSION, values }).catch(throwAway);
  return rows[0]?.version ?? null;
}
