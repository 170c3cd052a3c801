import { namedStatement, newId, rethrowUnavailable, type Queryable } from '#platform';
import { agentManifestSchema, type AgentManifestInput } from './manifest.ts';

const CREATE_AGENT = namedStatement(import.meta.dirname, 'create-agent.sql');
const ADD_AGENT_VERSION = namedStatement(import.meta.dirname, 'add-agent-version.sql');
const CHANGE_AGENT = namedStatement(import.meta.dirname, 'change-agent.sql');

export interface NewAgent {
  organizationId: string;
  ownerPersonId?: string | null;
  access?: 'organization' | 'invited';
  manifest: AgentManifestInput;
}

/** Makes an agent that is not published, named as the manifest says; answers its id. Throws ZodError, DatabaseUnavailable. */
export async function createAgent(
  database: Queryable,
  { organizationId, ownerPersonId, access, manifest }: NewAgent,
): Promise<string> {
  const { name, description, kind } = agentManifestSchema.parse(manifest);
  const id = newId();
  const values = [id, organizationId, ownerPersonId ?? null, name, description, kind, access ?? 'organization'];
  await database.query({ ...CREATE_AGENT, values }).catch(rethrowUnavailable);
  return id;
}

/**
 * Stores the manifest, its defaults filled in, as the agent's next version and makes it the live one; answers the
 * version's number, null when there is no such agent or it is deleted. Throws ZodError, DatabaseUnavailable.
 */
export async function addAgentVersion(
  database: Queryable,
  agentId: string,
  input: AgentManifestInput,
  { publish = false } = {},
): Promise<number | null> {
  const manifest = agentManifestSchema.parse(input);
  const { name, description, kind } = manifest;
  const values = [agentId, JSON.stringify(manifest), name, description, kind, publish];
  const { rows } = await database
    .query<{ version: number }>({ ...ADD_AGENT_VERSION, values })
    .catch(rethrowUnavailable);
  return rows[0]?.version ?? null;
}

/** The same, and publishes the agent. */
export function publishAgentVersion(
  database: Queryable,
  agentId: string,
  input: AgentManifestInput,
): Promise<number | null> {
  return addAgentVersion(database, agentId, input, { publish: true });
}

/** What is undefined stays. */
export interface AgentChange {
  published?: boolean | undefined;
  apiEnabled?: boolean | undefined;
  access?: 'organization' | 'invited' | undefined;
  ownerPersonId?: string | null | undefined;
  /** For good. */
  deleted?: true;
}

/** Every pod sees it within 5 s. Whether there is such an agent that is not deleted. Throws DatabaseUnavailable. */
export async function changeAgent(database: Queryable, agentId: string, change: AgentChange): Promise<boolean> {
  const { published = null, apiEnabled = null, access = null, ownerPersonId, deleted = false } = change;
  const owner = [ownerPersonId !== undefined, ownerPersonId ?? null];
  const values = [agentId, published, apiEnabled, access, ...owner, deleted];
  const { rowCount } = await database.query({ ...CHANGE_AGENT, values }).catch(rethrowUnavailable);
  return (rowCount ?? 0) > 0;
}

/** Names a person who may use the agent while its access is `invited`. Whether they were not named before. */
export async function invitePerson(database: Queryable, agentId: string, personId: string): Promise<boolean> {
  const text = 'insert into agent_people (agent_id, person_id) values ($1, $2) on conflict do nothing';
  const { rowCount } = await database.query(text, [agentId, personId]).catch(rethrowUnavailable);
  return (rowCount ?? 0) > 0;
}

/** Whether they were named. */
export async function uninvitePerson(database: Queryable, agentId: string, personId: string): Promise<boolean> {
  const text = 'delete from agent_people where agent_id = $1 and person_id = $2';
  const { rowCount } = await database.query(text, [agentId, personId]).catch(rethrowUnavailable);
  return (rowCount ?? 0) > 0;
}
