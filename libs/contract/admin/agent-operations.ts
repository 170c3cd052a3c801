import { z } from 'zod';
import { list, queryInteger, ulid } from '../scalars.ts';
import type { AdminOperation } from './operation.ts';
import { ADMIN_LIMITS, flag, newName, nextCursor, emptyBody, nothing, ok, page } from './parts.ts';
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
    summary: 'Create or update Agents from manifests, all or none',
    description:
      'An Agent is found by organization and name. A manifest that differs from the live one becomes the next version and is ' +
      'made live; an equal one changes nothing. New Agents are not published.',
    params: nothing,
    query: nothing,
    body: z.strictObject({
      organizationId: ulid,
      manifests: list(manifest, 1, ADMIN_LIMITS.manifests),
      ownerPersonId: ulid.optional().meta({ description: 'Owner of the Agents that are created.' }),
      publish: z.boolean().default(false).meta({ description: 'Whether to publish them too.' }),
      dryRun: z.boolean().default(false).meta({ description: 'Returns the result without changing anything.' }),
      expectedVersions: z.record(z.string(), z.int().min(0)).optional().meta({
        description:
          'The live version that the caller expects, by name of the Agent; 0 for none. 409 if another version is live; then nothing changes.',
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
      name: newName.optional().meta({ description: 'Only Agents with exactly this name.' }),
      deleted: flag.meta({ description: '`true`: only deleted Agents. Otherwise, only Agents that are not deleted.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ agents: z.array(managedAgent), nextCursor }),
    form: 'json',
  },
  getAgent: {
    method: 'GET',
    path: '/agents/{agentId}',
    summary: 'Read an Agent, its live manifest, its readiness and its tool policies',
    description: 'The readiness is that of the API process that answers.',
    params: agentParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({
      agent: managedAgent,
      manifest: manifest.nullable(),
      readiness: z.array(readinessProblem).meta({ description: 'Empty if the Agent can run.' }),
      warnings: z.array(readinessProblem).meta({
        description:
          'What is missing but not required, such as an optional tool server or a tool that was left out of a list.',
      }),
      toolPolicies: z.array(z.strictObject({ pattern: z.string(), policy: z.enum(['allow', 'ask', 'deny']) })).meta({
        description: 'The first pattern that matches a tool’s name decides; otherwise, the tool’s own default.',
      }),
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
    summary: 'Change the access, API access or owner of an Agent',
    description: 'Omitted fields are not changed. Every pod applies the change within 5 s.',
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
    summary: 'Publish an Agent',
    description: 'Every pod applies the change within 5 s. Publishing a published Agent changes nothing.',
    params: agentParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: agentAnswer,
    form: 'json',
  },
  unpublishAgent: {
    method: 'POST',
    path: '/agents/{agentId}/unpublish',
    summary: 'Unpublish an Agent',
    description: 'Within 5 s, every pod rejects its callers and ends their streams. Active Runs continue.',
    params: agentParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: agentAnswer,
    form: 'json',
  },
  listVersions: {
    method: 'GET',
    path: '/agents/{agentId}/versions',
    summary: 'List the versions of an Agent, newest first',
    description: 'Applying a manifest that differs from the live version creates a version. Versions never change.',
    params: agentParams,
    query: z.object({
      limit: page.limit,
      before: queriedVersion.optional().meta({ description: 'Only versions before this one.' }),
    }),
    body: emptyBody,
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
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ version: agentVersion, manifest }),
    form: 'json',
  },
  rollBackAgent: {
    method: 'POST',
    path: '/agents/{agentId}/rollback',
    summary: 'Make the manifest of an older version live again, as the next version',
    description: 'Runs keep the version that they started with.',
    params: agentParams,
    query: nothing,
    body: z
      .strictObject({
        version: z.int().min(1).max(ADMIN_LIMITS.version).optional().meta({
          description: 'The version to restore. Default: the one before the live one.',
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
      'Callers no longer find the Agent or its Threads. This call ends Threads for up to 2 s; the workers end the rest.',
    params: agentParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({
      agent: managedAgent,
      ended: z.int().meta({ description: 'Threads that this call has ended.' }),
      complete: z.boolean().meta({ description: 'Whether all Threads have ended.' }),
    }),
    form: 'json',
  },
  invitePerson: {
    method: 'POST',
    path: '/agents/{agentId}/people',
    summary: 'Invite a person to an Agent with access `invited`',
    description: 'To use the Agent, the person must also be a member of its organization.',
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
    summary: 'Remove an invitation',
    description: 'Every pod applies the change within 5 s. Has no effect on a person who is not invited.',
    params: invitedParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: ok,
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
