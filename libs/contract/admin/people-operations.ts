import { z } from 'zod';
import { ulid } from '../scalars.ts';
import type { AdminOperation } from './operation.ts';
import { ADMIN_LIMITS, newName, nextCursor, emptyBody, nothing, ok, page, time, ulids } from './parts.ts';
import { chatToken, mintedToken, organizationRecord, personRecord, tokenRecord } from './records.ts';

const organizationParams = z.object({ organizationId: ulid });
const memberParams = z.object({ organizationId: ulid, personId: ulid });
const personParams = z.object({ personId: ulid });
const tokenParams = z.object({ tokenId: ulid });

const named = z.strictObject({ name: newName });
const byName = newName.optional().meta({ description: 'Only those with exactly this name.' });
const agentIds = (min: number) => ulids(min, ADMIN_LIMITS.agentsAToken);

/** A limit of a token. Null, or no value for a new token, means the default of its kind. */
const limit = (what: string) =>
  z
    .int()
    .min(1)
    .max(ADMIN_LIMITS.tokenLimit)
    .nullish()
    .meta({ description: `${what} Null means the default of its kind.` });
const requestsPerMinute = limit('Requests per minute, over all processes.');
const maxStreams = limit('Open event streams per process.');

/** A quota of an organization. Null means the setting of the installation. */
const quota = (what: string) =>
  z
    .int()
    .min(0)
    .nullish()
    .meta({ description: `${what} Null means the setting of the installation.` });

const newToken = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('person'),
    personId: ulid,
    name: newName,
    expiresAt: time.nullish(),
    requestsPerMinute,
    maxStreams,
  }),
  z.strictObject({
    kind: z.literal('service'),
    organizationId: ulid,
    agentIds: agentIds(1),
    allowAttribution: z.boolean().default(false),
    name: newName,
    expiresAt: time.nullish(),
    requestsPerMinute,
    maxStreams,
  }),
  z.strictObject({ kind: z.literal('operator'), name: newName, expiresAt: time.nullish(), requestsPerMinute }),
]);

/** Organizations, people, memberships and tokens (docs/spec/decisions.md#tokens). */
export const peopleOperations = {
  createOrganization: {
    method: 'POST',
    path: '/organizations',
    summary: 'Create an organization',
    description: 'Names need not be unique.',
    params: nothing,
    query: nothing,
    body: named,
    status: 201,
    answer: z.strictObject({ organization: organizationRecord }),
    form: 'json',
  },
  listOrganizations: {
    method: 'GET',
    path: '/organizations',
    summary: 'List organizations, newest first',
    description: '`name` finds organizations by their exact name.',
    params: nothing,
    query: z.object({ ...page, name: byName }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ organizations: z.array(organizationRecord), nextCursor }),
    form: 'json',
  },
  getOrganization: {
    method: 'GET',
    path: '/organizations/{organizationId}',
    summary: 'Read an organization',
    description: 'Includes its concurrency limit, its files and their quota.',
    params: organizationParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ organization: organizationRecord }),
    form: 'json',
  },
  renameOrganization: {
    method: 'POST',
    path: '/organizations/{organizationId}',
    summary: 'Rename an organization',
    description: 'Its id does not change.',
    params: organizationParams,
    query: nothing,
    body: named,
    status: 200,
    answer: z.strictObject({ organization: organizationRecord }),
    form: 'json',
  },
  limitOrganization: {
    method: 'POST',
    path: '/organizations/{organizationId}/concurrency',
    summary: 'Limit how many Runs of an organization are executed at the same time',
    description:
      'Runs beyond the limit stay queued, and their queue time limit is suspended. Every worker applies the limit within 2.5 s.',
    params: organizationParams,
    query: nothing,
    body: z.strictObject({
      runs: z
        .int()
        .min(1, 'must be at least 1, or null for the limit of the installation')
        .max(10_000)
        .nullable()
        .meta({ description: 'Null means `SLOTS_PERCENT_PER_ORGANIZATION` of the installation.' }),
    }),
    status: 200,
    answer: z.strictObject({ organization: organizationRecord }),
    form: 'json',
  },
  setFileQuota: {
    method: 'POST',
    path: '/organizations/{organizationId}/file-quota',
    summary: 'Limit the files of an organization and their bytes',
    description:
      'Omitted fields are not changed. New files beyond the quota are rejected. Nothing is deleted, and deletions are always allowed.',
    params: organizationParams,
    query: nothing,
    body: z.strictObject({
      maxCount: quota('Total number of files.'),
      maxBytes: quota('Total bytes of all files.'),
    }),
    status: 200,
    answer: z.strictObject({ organization: organizationRecord }),
    form: 'json',
  },
  addMember: {
    method: 'POST',
    path: '/organizations/{organizationId}/members',
    summary: 'Add a member to an organization',
    description:
      'Within 5 s, every pod lets the person use the organization’s Agents. Adding a member again changes nothing.',
    params: organizationParams,
    query: nothing,
    body: z.strictObject({ personId: ulid }),
    status: 200,
    answer: ok,
    form: 'json',
  },
  removeMember: {
    method: 'DELETE',
    path: '/organizations/{organizationId}/members/{personId}',
    summary: 'Remove a member from an organization',
    description:
      'Within 5 s, every pod rejects the person’s requests to the organization’s Agents and ends open streams. Has no effect on a person who is not a member.',
    params: memberParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: ok,
    form: 'json',
  },
  createPerson: {
    method: 'POST',
    path: '/people',
    summary: 'Create a person as a member of the given organizations',
    description: 'The person has no token yet.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ name: newName, organizationIds: ulids(0, ADMIN_LIMITS.organizationsAPerson).default([]) }),
    status: 201,
    answer: z.strictObject({ person: personRecord }),
    form: 'json',
  },
  listPeople: {
    method: 'GET',
    path: '/people',
    summary: 'List people, newest first',
    description: '`name` finds people by their exact name.',
    params: nothing,
    query: z.object({
      ...page,
      name: byName,
      organizationId: ulid.optional().meta({ description: 'Only its members.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ people: z.array(personRecord), nextCursor }),
    form: 'json',
  },
  getPerson: {
    method: 'GET',
    path: '/people/{personId}',
    summary: 'Read a person',
    description: 'Includes the organizations that the person is a member of.',
    params: personParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ person: personRecord }),
    form: 'json',
  },
  renamePerson: {
    method: 'POST',
    path: '/people/{personId}',
    summary: 'Rename a person',
    description: 'The id does not change.',
    params: personParams,
    query: nothing,
    body: named,
    status: 200,
    answer: z.strictObject({ person: personRecord }),
    form: 'json',
  },
  mintToken: {
    method: 'POST',
    path: '/tokens',
    summary: 'Create a token',
    description: 'The response contains its secret, which is shown only once.',
    params: nothing,
    query: nothing,
    body: newToken,
    status: 201,
    answer: mintedToken,
    form: 'json',
  },
  listTokens: {
    method: 'GET',
    path: '/tokens',
    summary: 'List tokens, newest first',
    description: 'Includes expired and revoked tokens, unless `status` is given. Secrets are never listed.',
    params: nothing,
    query: z.object({
      ...page,
      name: byName,
      kind: tokenRecord.shape.kind.optional(),
      status: tokenRecord.shape.status.optional(),
      personId: ulid.optional(),
      organizationId: ulid.optional().meta({ description: 'Return only service tokens of this organization.' }),
      agentId: ulid.optional().meta({ description: 'Return only service tokens that may call this Agent.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ tokens: z.array(tokenRecord), nextCursor }),
    form: 'json',
  },
  getToken: {
    method: 'GET',
    path: '/tokens/{tokenId}',
    summary: 'Read a token',
    description: 'The secret is not returned, because only its SHA-256 is stored.',
    params: tokenParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ token: tokenRecord }),
    form: 'json',
  },
  updateToken: {
    method: 'POST',
    path: '/tokens/{tokenId}',
    summary: 'Change a token’s name, expiry, limits, attribution or Agents',
    description:
      'Omitted fields are not changed. Every pod applies the change within 5 s. A lower stream limit does not close open streams.',
    params: tokenParams,
    query: nothing,
    body: z.strictObject({
      name: newName.optional(),
      expiresAt: time.nullish().meta({ description: 'Null means that it never expires.' }),
      allowAttribution: z.boolean().optional(),
      requestsPerMinute,
      maxStreams,
      addAgentIds: agentIds(0).default([]),
      removeAgentIds: agentIds(0).default([]),
    }),
    status: 200,
    answer: z.strictObject({ token: tokenRecord }),
    form: 'json',
  },
  rotateToken: {
    method: 'POST',
    path: '/tokens/{tokenId}/rotate',
    summary: 'Give a token a new secret',
    description:
      'The id of the token does not change. The old secret works for another `graceSeconds` (default 0: it stops working immediately).',
    params: tokenParams,
    query: nothing,
    body: z
      .strictObject({
        graceSeconds: z.int().min(0).max(2_592_000).default(0).meta({ description: 'At most 30 days.' }),
      })
      .prefault({}),
    status: 200,
    answer: mintedToken,
    form: 'json',
  },
  revokeToken: {
    method: 'POST',
    path: '/tokens/{tokenId}/revoke',
    summary: 'Permanently revoke a token',
    description: 'Within 5 s, every pod rejects the token and ends its streams. Revoking again keeps the first time.',
    params: tokenParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ token: tokenRecord }),
    form: 'json',
  },
  identifyToken: {
    method: 'POST',
    path: '/tokens/identify',
    summary: 'Find a token by the SHA-256 of its secret',
    description: 'Identifies a leaked token without sending it.',
    params: nothing,
    query: nothing,
    body: z.strictObject({
      sha256: z
        .string()
        .regex(/^[0-9A-Fa-f]{64}$/, 'must be a SHA-256 in hexadecimal')
        .meta({ description: 'In hexadecimal.' }),
    }),
    status: 200,
    answer: z.strictObject({ token: tokenRecord }),
    form: 'json',
  },
  createChatToken: {
    method: 'POST',
    path: '/chat-tokens',
    summary: 'Create a browser token for chatting with an Agent',
    description:
      'The token is for the calling operator and works in the Agent Threads API. It also ends within 5 s of the session or operator token that created it. ' +
      'Its Threads belong to a service token named `chat` of the Agent’s organization, which the first use creates. ' +
      'Requests for an Agent that was added to it just now take up to 2.5 s, until all processes know the Agent. ' +
      'If the installation has no `BROWSER_TOKEN_KEYS`, or callers cannot use the Agent, the response is 409.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ agentId: ulid }),
    status: 201,
    answer: chatToken,
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
