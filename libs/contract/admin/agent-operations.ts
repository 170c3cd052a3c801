import { z } from 'zod';
import { list, queryInteger, ulid } from '../scalars.ts';
import type { AdminOperation } from './operation.ts';
import { ADMIN_LIMITS, flag, newName, nextCursor, noBody, nothing, ok, page } from './parts.ts';
import { agentVersion, appliedManifest, managedAgent, manifest, readinessProblem } from './records.ts';

const agentParams = z.object({ agentId: ulid });
const queriedVersion = queryInteger(1, ADMIN_LIMITS.version).meta({ description: 'Number of a version.' });
const versionParams = z.object({ agentId: ulid, version: queriedVersion });
const invitedParams = z.object({ agentId: ulid, personId: ulid });
const agentAnswer = z.strictObject({ agent: managedAgent });

/** Agents, their versions, and who may use them. */
export const agentOperations = {
  applyManifests: {
    method: 'POST',
    path: '/agents/apply',
    summary: 'Create or update Agents as their manifests say, all or none',
    description:
      'An Agent is found by organization and name. A manifest that differs from its live one becomes the next version, and live; one ' +
      'that is the same changes nothing. New Agents are not published.',
    params: nothing,
    query: nothing,
    body: z.strictObject({
      organizationId: ulid,
      manifests: list(manifest, 1, ADMIN_LIMITS.manifests),
      ownerPersonId: ulid.optional().meta({ description: 'Of Agents that are created.' }),
      publish: z.boolean().default(false).meta({ description: 'Publishes them too.' }),
      dryRun: z
        .boolean()
        .default(false)
        .meta({ description: 'Answers what would become of them, and changes nothing.' }),
      expectedVersions: z.record(z.string(), z.int().min(0)).optional().meta({
        description:
          'By name: the live versions as the caller saw them, 0 for none. With another one: 409, and nothing changes.',
      }),
    }),
    status: 200,
    answer: z.strictObject({ agents: z.array(appliedManifest) }),
    form: 'json',
  },
  listAgents: {
    method: 'GET',
    path: '/agents',
    summary: 'List Agents, newest first',
    description: 'Includes Agents that are not published. Deleted Agents are listed only with `deleted=true`.',
    params: nothing,
    query: z.object({
      ...page,
      organizationId: ulid.optional(),
      name: newName.optional().meta({ description: 'Only those of exactly this name.' }),
      deleted: flag.meta({ description: '`true`: only deleted ones. Else only the others.' }),
    }),
    body: noBody,
    status: 200,
    answer: z.strictObject({ agents: z.array(managedAgent), nextCursor }),
    form: 'json',
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    summary: 'Read an Agent, its live manifest, whether it can run, and what its tools may do',
    description: 'The readiness is that of the API process that answers.',
    params: agentParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({
      agent: managedAgent,
      manifest: manifest.nullable(),
      readiness: z.array(readinessProblem).meta({ description: 'Empty: it can run.' }),
      warnings: z.array(readinessProblem).meta({
        description:
          'What it lacks and can do without, such as a tool server that is not required, or a tool that was left out of a list.',
      }),
      toolPolicies: z
        .array(z.strictObject({ pattern: z.string(), policy: z.enum(['allow', 'ask', 'deny']) }))
        .meta({ description: 'The first that fits a tool’s name decides; else the tool’s own default.' }),
      toolServers: z.array(
        z.strictObject({
          name: z.string().meta({ description: 'Its tools are named `name__tool`.' }),
          required: z.boolean().meta({ description: 'Whether the Agent cannot run without it.' }),
        }),
      ),
    }),
    form: 'json',
  },
  updateAgent: {
    method: 'POST',
    path: '/agents/{agentId}',
    summary: 'Change who may use an Agent, who owns it, and whether callers reach it',
    description: 'What is left out stays. Every pod sees it within 5 s.',
    params: agentParams,
    query: nothing,
    body: z.strictObject({
      access: managedAgent.shape.access.optional(),
      apiEnabled: z.boolean().optional(),
      ownerPersonId: ulid.nullish(),
    }),
    status: 200,
    answer: agentAnswer,
    form: 'json',
  },
  publishAgent: {
    method: 'POST',
    path: '/agents/{agentId}/publish',
    summary: 'Let callers use an Agent',
    description: 'Every pod sees it within 5 s. Publishing a published Agent changes nothing.',
    params: agentParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: agentAnswer,
    form: 'json',
  },
  unpublishAgent: {
    method: 'POST',
    path: '/agents/{agentId}/unpublish',
    summary: 'Have callers of an Agent refused',
    description: 'Within 5 s on every pod, open streams included. Runs that are under way go on.',
    params: agentParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: agentAnswer,
    form: 'json',
  },
  listVersions: {
    method: 'GET',
    path: '/agents/{agentId}/versions',
    summary: 'List the versions of an Agent, newest first',
    description: 'Each applied manifest that differed from the live one is a version. Versions never change.',
    params: agentParams,
    query: z.object({
      limit: page.limit,
      before: queriedVersion.optional().meta({ description: 'Only those before this one.' }),
    }),
    body: noBody,
    status: 200,
    answer: z.strictObject({ versions: z.array(agentVersion) }),
    form: 'json',
  },
  getVersion: {
    method: 'GET',
    path: '/agents/{agentId}/versions/{version}',
    summary: 'Read a version of an Agent',
    description: 'The manifest is as it was applied.',
    params: versionParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({ version: agentVersion, manifest }),
    form: 'json',
  },
  rollBackAgent: {
    method: 'POST',
    path: '/agents/{agentId}/rollback',
    summary: 'Make the manifest of an older version live again, as the next version',
    description: 'Runs keep the version that they began with.',
    params: agentParams,
    query: nothing,
    body: z
      .strictObject({
        version: z.int().min(1).max(ADMIN_LIMITS.version).optional().meta({
          description: 'Default: the one before the live one.',
        }),
      })
      .prefault({}),
    status: 200,
    answer: z.strictObject({ agent: managedAgent, diff: appliedManifest.shape.diff }),
    form: 'json',
  },
  deleteAgent: {
    method: 'DELETE',
    path: '/agents/{agentId}',
    summary: 'Delete an Agent; its Threads become TERMINATED',
    description:
      'Callers find neither it nor its Threads from then on. The Threads are ended by this call as far as 2 s allow, the rest by the workers.',
    params: agentParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: z.strictObject({
      agent: managedAgent,
      ended: z.int().meta({ description: 'Threads that this call has ended.' }),
      complete: z.boolean().meta({ description: 'Whether these were all.' }),
    }),
    form: 'json',
  },
  invitePerson: {
    method: 'POST',
    path: '/agents/{agentId}/people',
    summary: 'Name a person who may use an invited-only Agent',
    description: 'They must be a member of its organization to use it.',
    params: agentParams,
    query: nothing,
    body: z.strictObject({ personId: ulid }),
    status: 200,
    answer: ok,
    form: 'json',
  },
  uninvitePerson: {
    method: 'DELETE',
    path: '/agents/{agentId}/people/{personId}',
    summary: 'Take an invitation back',
    description: 'Every pod sees it within 5 s. A person who was not invited is left unchanged.',
    params: invitedParams,
    query: nothing,
    body: noBody,
    status: 200,
    answer: ok,
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
