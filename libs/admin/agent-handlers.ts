import type { Pool, PoolClient } from 'pg';
import {
  addAgentVersion,
  changeAgent,
  diffManifests,
  invitePerson,
  uninvitePerson,
  type AgentCatalogue,
  type AgentChange,
  type Harnesses,
} from '#agents';
import type { ManagedAgent } from '#contract';
import type { CommandHandler } from '#event-store';
import { applyManifests } from './apply-manifests.ts';
import { audited, lockRow, type Actor } from './audit.ts';
import { endThreadsOf } from './end-threads.ts';
import type { SomeHandlers } from './handlers.ts';
import { findPerson } from './people-handlers.ts';
import { AdminReader, pageOf } from './reader.ts';
import { AdminRefused, missing } from './refused.ts';

const ok = { ok: true } as const;

/** How long a deletion ends Threads before it responds, milliseconds. The workers' housekeeping ends the rest. */
const END_THREADS_MS = 2_000;

export interface AgentHandlerParts {
  pool: Pool;
  agents: AgentCatalogue;
  harnesses: Harnesses;
  handler: CommandHandler;
}

/** Handles Agents and their manifests. */
export function agentHandlers({
  pool,
  agents,
  harnesses,
  handler,
}: AgentHandlerParts): SomeHandlers<
  'applyManifests' | 'listAgents' | 'getAgent' | 'updateAgent' | 'publishAgent' | 'unpublishAgent' | 'deleteAgent'
> {
  const reader = new AdminReader(pool);
  const change = (agentId: string, actor: Actor, wanted: AgentChange, action: string) =>
    changeAudited(pool, { agentId, actor, wanted, action });
  return {
    applyManifests: ({ body }, { actor }) => applyManifests({ pool, agents, harnesses }, body, actor),

    listAgents: async ({ query: { limit, deleted = false, ...wanted } }) => {
      const found = await reader.agents({ ...wanted, deleted, limit: limit + 1 });
      const { page, nextCursor } = pageOf(found, limit);
      return { agents: page, nextCursor };
    },

    getAgent: async ({ params: { agentId } }) => {
      const agent = await findAgent(reader, agentId);
      const manifest = agent.liveVersion === null ? null : await agents.version(agentId, agent.liveVersion);
      if (manifest === null) {
        return { agent, manifest, readiness: [], warnings: [], toolPolicies: [], toolServers: [] };
      }
      const readiness = [...(await agents.readiness(manifest))];
      const warnings = [...(await agents.warnings(manifest)), ...(await agents.toolWarnings(agentId, manifest))];
      const toolServers = manifest.toolServers.map(({ name, required }) => ({ name, required }));
      return { agent, manifest, readiness, warnings, toolPolicies: manifest.tools, toolServers };
    },

    updateAgent: ({ params: { agentId }, body }, { actor }) => change(agentId, actor, body, 'agent.updated'),
    publishAgent: ({ params: { agentId } }, { actor }) =>
      change(agentId, actor, { published: true }, 'agent.published'),
    unpublishAgent: ({ params: { agentId } }, { actor }) =>
      change(agentId, actor, { published: false }, 'agent.unpublished'),

    deleteAgent: async ({ params: { agentId } }, { actor }) => {
      const until = performance.now() + END_THREADS_MS;
      const { agent } = await change(agentId, actor, { deleted: true }, 'agent.deleted');
      return { agent, ...(await endThreadsOf(pool, handler, agentId, until)) };
    },
  };
}

export function versionHandlers(pool: Pool): SomeHandlers<'listVersions' | 'getVersion' | 'rollBackAgent'> {
  const reader = new AdminReader(pool);
  return {
    listVersions: async ({ params: { agentId }, query: { limit, before } }) => {
      await findAgent(reader, agentId);
      return { versions: await reader.versions(agentId, { before, limit }) };
    },

    getVersion: async ({ params: { agentId, version } }) => {
      await findAgent(reader, agentId);
      const found = await reader.version(agentId, version);
      if (found === null) throw missing('version', version);
      return found;
    },

    rollBackAgent: ({ params: { agentId }, body }, { actor }) => rollBack(pool, agentId, body.version, actor),
  };
}

export function invitationHandlers(pool: Pool): SomeHandlers<'invitePerson' | 'uninvitePerson'> {
  return {
    invitePerson: ({ params: { agentId }, body: { personId } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const { organizationId } = await lockLiveAgent(client, agentId);
        await findPerson(new AdminReader(client), personId);
        const invited = await invitePerson(client, agentId, personId);
        if (invited) note({ action: 'agent.invited', targetId: agentId, organizationId, details: { personId } });
        return ok;
      }),

    uninvitePerson: ({ params: { agentId, personId } }, { actor }) =>
      audited(pool, actor, async (client, note) => {
        const { organizationId } = await lockLiveAgent(client, agentId);
        await findPerson(new AdminReader(client), personId);
        const removed = await uninvitePerson(client, agentId, personId);
        if (removed) note({ action: 'agent.uninvited', targetId: agentId, organizationId, details: { personId } });
        return ok;
      }),
  };
}

/** Returns the Agent. Throws AdminRefused, as do the functions below. */
async function findAgent(reader: AdminReader, id: string): Promise<ManagedAgent> {
  const [agent] = await reader.agents({ id });
  if (agent === undefined) throw missing('Agent', id);
  return agent;
}

/** Returns an Agent that is not deleted and locks it until the end of the transaction. */
async function lockLiveAgent(client: PoolClient, id: string): Promise<ManagedAgent> {
  await lockRow(client, 'agents', id);
  const agent = await findAgent(new AdminReader(client), id);
  if (agent.deletedAt !== null) throw new AdminRefused('conflict', `The Agent ${id} is deleted.`);
  return agent;
}

interface WantedChange {
  agentId: string;
  actor: Actor;
  wanted: AgentChange;
  action: string;
}

/** Changes an Agent. Writes no audit entry if nothing differs. */
function changeAudited(pool: Pool, { agentId, actor, wanted, action }: WantedChange): Promise<{ agent: ManagedAgent }> {
  return audited(pool, actor, async (client, note) => {
    const reader = new AdminReader(client);
    const before = await lockLiveAgent(client, agentId);
    const { deleted, ...fields } = wanted;
    const news = Object.entries(fields).filter(
      ([field, value]) => value !== undefined && value !== before[field as keyof ManagedAgent],
    );
    if (news.length === 0 && !deleted) return { agent: before };
    if (typeof wanted.ownerPersonId === 'string') await findPerson(reader, wanted.ownerPersonId);
    await changeAgent(client, agentId, wanted);
    const { organizationId, name } = before;
    note({ action, targetId: agentId, organizationId, details: { name, ...Object.fromEntries(news) } });
    return { agent: await findAgent(reader, agentId) };
  });
}

/** Adds an older manifest as the next version. */
function rollBack(pool: Pool, agentId: string, wanted: number | undefined, actor: Actor) {
  return audited(pool, actor, async (client, note) => {
    const reader = new AdminReader(client);
    const { liveVersion, organizationId, name } = await lockLiveAgent(client, agentId);
    const version = wanted ?? (liveVersion ?? 0) - 1;
    if (version < 1) throw new AdminRefused('conflict', 'The Agent has no version before the live one.');
    const to = await reader.version(agentId, version);
    if (to === null) throw missing('version', version);
    const live = await reader.version(agentId);
    const diff = await diffManifests(live?.manifest ?? null, to.manifest);
    if (diff === '') throw new AdminRefused('conflict', `Version ${version} is identical to the live version.`);
    const added = await addAgentVersion(client, agentId, to.manifest);
    const details = { name, version: added, as: version };
    note({ action: 'agent.rolled_back', targetId: agentId, organizationId, details });
    return { agent: await findAgent(reader, agentId), diff };
  });
}
