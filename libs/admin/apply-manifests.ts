import type { Pool, PoolClient } from 'pg';
import {
  addAgentVersion,
  changeAgent,
  checkManifest,
  createAgent,
  diffManifests,
  isTooLargeManifest,
  type AgentCatalogue,
  type AgentManifest,
  type Harnesses,
} from '#agents';
import type { AdminInput, AdminOperations, AppliedManifest, ManagedAgent } from '#contract';
import { pauseIfLong } from '#platform';
import { audited, lockRow, type Actor, type Note } from './audit.ts';
import { findOrganization, findPerson } from './people-handlers.ts';
import { AdminReader } from './reader.ts';
import { AdminRefused } from './refused.ts';

type Body = AdminInput<AdminOperations['applyManifests']>['body'];

export interface ApplyParts {
  pool: Pool;
  agents: AgentCatalogue;
  harnesses: Harnesses;
}

/**
 * Creates or updates the agents of an organization from their manifests, all or none. Throws AdminRefused if a manifest is
 * invalid or names something that this installation does not allow, two share a name, two agents have the name, or an agent is not at the expected version.
 */
export async function applyManifests(
  parts: ApplyParts,
  body: Body,
  actor: Actor,
): Promise<{ agents: AppliedManifest[] }> {
  const manifests = await readManifests(parts.harnesses, body.manifests);
  refuseSameNames(manifests);
  await refuseNotAllowed(parts.agents, manifests);
  // Read before any change, so that a failure changes nothing.
  const readiness = await Promise.all(manifests.map((manifest) => parts.agents.readiness(manifest)));
  const applied = await audited(parts.pool, actor, async (client, note) => {
    const reader = new AdminReader(client);
    const { id } = await findOrganization(reader, body.organizationId);
    if (body.ownerPersonId !== undefined) await findPerson(reader, body.ownerPersonId);
    // Two concurrent requests would otherwise both create the agent.
    await lockRow(client, 'organizations', id);
    await lockAgents(client, id, manifests);
    const plans = [];
    for (const manifest of manifests) plans.push(await planOne(reader, body, manifest));
    if (body.dryRun) return plans;
    const done = [];
    for (const plan of plans) done.push(await carryOut(client, body, plan, note));
    return done;
  });
  return { agents: applied.map((plan, i) => describe(plan, [...readiness[i]!])) };
}

/** Makes concurrent changes of these agents wait. */
async function lockAgents(client: PoolClient, organizationId: string, manifests: AgentManifest[]): Promise<void> {
  await client.query(
    `select from agents where organization_id = $1 and name = any ($2::text[]) and deleted_at is null
     order by id for no key update`,
    [organizationId, manifests.map(({ name }) => name)],
  );
}

/** Pauses between manifests when a turn of the event loop has taken long. */
async function readManifests(harnesses: Harnesses, values: Body['manifests']): Promise<AgentManifest[]> {
  const manifests: AgentManifest[] = [];
  for (const [i, value] of values.entries()) {
    manifests.push(readManifest(harnesses, value, i));
    await pauseIfLong();
  }
  return manifests;
}

function readManifest(harnesses: Harnesses, value: Record<string, unknown>, i: number): AgentManifest {
  if (isTooLargeManifest(value)) throw new AdminRefused('invalid_request', `manifests.${i}: is too large`);
  const checked = checkManifest(value, harnesses);
  if ('manifest' in checked) return checked.manifest;
  const problems = checked.problems.map((problem) => `manifests.${i}.${problem}`);
  throw new AdminRefused('invalid_request', problems.join('; '));
}

function refuseSameNames(manifests: readonly AgentManifest[]): void {
  const names = manifests.map(({ name }) => name);
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated !== undefined)
    throw new AdminRefused('invalid_request', `Two manifests have the name ${JSON.stringify(repeated)}.`);
}

/** An Agent that names such things would only fail later. */
async function refuseNotAllowed(agents: AgentCatalogue, manifests: readonly AgentManifest[]): Promise<void> {
  const found = await Promise.all(manifests.map((manifest) => agents.notAllowed(manifest)));
  const problems = found.flatMap((parts, i) =>
    parts.map(({ path, error }) => `manifests.${i}.${path}: ${error.message}`),
  );
  if (problems.length > 0) throw new AdminRefused('invalid_request', problems.join('; '));
}

interface Plan {
  manifest: AgentManifest;
  /** Null if it does not exist yet. */
  agent: ManagedAgent | null;
  change: AppliedManifest['change'];
  /** The live version after the change. */
  version: number;
  diff: string;
  published: boolean;
}

async function planOne(reader: AdminReader, body: Body, manifest: AgentManifest): Promise<Plan> {
  const { name } = manifest;
  const found = await reader.agents({ organizationId: body.organizationId, name, deleted: false, limit: 2 });
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(' and ');
    throw new AdminRefused('conflict', `Agents ${ids} are both named ${JSON.stringify(name)}; delete one.`);
  }
  const agent = found[0] ?? null;
  const live = agent?.liveVersion ?? 0;
  const { expectedVersions = {} } = body;
  const expected = Object.hasOwn(expectedVersions, name) ? expectedVersions[name] : undefined;
  if (expected !== undefined && expected !== live) {
    throw new AdminRefused(
      'conflict',
      `${JSON.stringify(name)} is at version ${live}, not ${expected}; apply the manifest again.`,
    );
  }
  const version = agent === null ? null : await reader.version(agent.id, live);
  const diff = await diffManifests(version?.manifest ?? null, manifest);
  const change = agent === null ? 'created' : diff === '' ? 'unchanged' : 'updated';
  const published = body.publish || (agent?.published ?? false);
  return { manifest, agent, change, version: diff === '' ? live : live + 1, diff, published };
}

async function carryOut(client: PoolClient, body: Body, plan: Plan, note: Note): Promise<Plan> {
  const { organizationId, ownerPersonId, publish } = body;
  const { manifest, agent: before, change, published } = plan;
  const { name } = manifest;
  const agentId =
    before?.id ?? (await createAgent(client, { organizationId, ownerPersonId: ownerPersonId ?? null, manifest }));
  const about = { targetId: agentId, organizationId };
  if (before === null) note({ action: 'agent.created', ...about, details: { name, ownerPersonId } });
  if (change !== 'unchanged') {
    const version = await addAgentVersion(client, agentId, manifest);
    if (version !== plan.version)
      throw new AdminRefused('conflict', `Another request is changing ${JSON.stringify(name)}; retry.`);
    note({ action: 'agent.version_added', ...about, details: { name, version } });
  }
  if (publish && !before?.published) {
    await changeAgent(client, agentId, { published: true });
    note({ action: 'agent.published', ...about, details: { name } });
  }
  const [agent = null] = await new AdminReader(client).agents({ id: agentId });
  return { ...plan, agent, published };
}

function describe(plan: Plan, readiness: AppliedManifest['readiness']): AppliedManifest {
  const { manifest, agent, change, version, diff, published } = plan;
  return { name: manifest.name, agentId: agent?.id ?? null, change, version, diff, published, readiness };
}
