import { z } from 'zod';
import { answeredUlid, dateTime } from '../scalars.ts';

/** Schemas that have a name in the OpenAPI document of the admin API. */
export const adminComponents = z.registry<{ id: string }>();

const agentName = z.string().meta({ description: 'Of the Agent’s live manifest.' });
const organizationName = z.string();

const name = z.string().meta({ description: 'For people; need not be unique.' });

export const organizationRecord = z
  .strictObject({
    id: answeredUlid,
    name,
    createdAt: dateTime,
    concurrency: z.strictObject({
      runs: z
        .int()
        .nullable()
        .meta({ description: 'Runs of all its Agents that are executed at once; null: as many as there are slots.' }),
    }),
    files: z
      .strictObject({
        count: z.int(),
        bytes: z.int(),
        maxCount: z.int().nullable().meta({ description: 'Null: `ORGANIZATION_FILES` of the installation.' }),
        maxBytes: z.int().nullable().meta({ description: 'Null: `ORGANIZATION_FILE_BYTES` of the installation.' }),
        limits: z.strictObject({ maxCount: z.int().nullable(), maxBytes: z.int().nullable() }).meta({
          description: 'The limits in force, with the settings of the API process that answers. Null: no limit.',
        }),
      })
      .meta({ description: 'Its drafts, attachments, artifacts and files of folders, and how many it can have.' }),
  })
  .meta({ description: 'Whom Agents belong to, and people are members of.' })
  .register(adminComponents, { id: 'Organization' });

export const personRecord = z
  .strictObject({
    id: answeredUlid,
    name,
    createdAt: dateTime,
    organizationIds: z.array(answeredUlid).meta({ description: 'Organizations that the person is a member of.' }),
  })
  .meta({ description: 'Somebody who can have tokens and own Agents and Threads.' })
  .register(adminComponents, { id: 'Person' });

const ownLimit = z.int().nullable().meta({ description: 'Set for this token; null means the default of its kind.' });

export const tokenRecord = z
  .strictObject({
    id: answeredUlid,
    kind: z.enum(['person', 'service', 'operator']).meta({ description: 'Who calls with it.' }),
    name,
    status: z.enum(['active', 'expired', 'revoked']).meta({ description: 'Only an active one is accepted.' }),
    personId: answeredUlid.nullable().meta({ description: 'Whose it is; null unless it is a person’s.' }),
    personName: z.string().nullable(),
    organizationId: answeredUlid.nullable().meta({ description: 'Null unless it is a service’s.' }),
    organizationName: organizationName.nullable(),
    agentIds: z.array(answeredUlid).meta({ description: 'Agents that a service may call; of others empty.' }),
    allowAttribution: z.boolean().meta({ description: 'Whether a service may make Threads in the name of a person.' }),
    requestsPerMinute: ownLimit,
    maxStreams: ownLimit,
    limits: z
      .strictObject({
        requestsPerMinute: z.int().meta({ description: 'Counted over all processes.' }),
        maxStreams: z.int().nullable().meta({
          description: 'Open event streams per process; null for operators, who open none.',
        }),
      })
      .meta({ description: 'The limits in force, with the defaults of the API process that answers.' }),
    createdAt: dateTime,
    expiresAt: dateTime.nullable().meta({ description: 'Null: never.' }),
    revokedAt: dateTime.nullable(),
    rotatedAt: dateTime.nullable().meta({ description: 'When its secret was last changed.' }),
    oldSecretUntil: dateTime.nullable().meta({ description: 'Until when the secret before the last rotation works.' }),
    lastUsedAt: dateTime.nullable().meta({ description: 'To the minute.' }),
  })
  .meta({ description: 'What is known of a token; its secret is not, only the secret’s SHA-256 is stored.' })
  .register(adminComponents, { id: 'Token' });

export const mintedToken = z
  .strictObject({
    token: tokenRecord,
    secret: z.string().meta({ description: 'What callers send. Shown once, here.' }),
  })
  .meta({ description: 'A token with its new secret.' })
  .register(adminComponents, { id: 'MintedToken' });

export const readinessProblem = z
  .strictObject({
    message: z.string().meta({ description: 'What callers are told.' }),
    detail: z.string().meta({ description: 'What exactly is missing.' }),
  })
  .meta({ description: 'What an Agent lacks in the process that answers.' })
  .register(adminComponents, { id: 'ReadinessProblem' });

export const managedAgent = z
  .strictObject({
    id: answeredUlid,
    organizationId: answeredUlid,
    organizationName,
    ownerPersonId: answeredUlid.nullable(),
    name: z.string().meta({ description: 'Of its live manifest. `apply` finds an Agent by organization and name.' }),
    description: z.string(),
    kind: z.enum(['pet', 'cattle']),
    access: z.enum(['organization', 'invited']).meta({
      description: '`organization`: every member may use it. `invited`: its owner and those who are named.',
    }),
    published: z.boolean(),
    apiEnabled: z.boolean().meta({ description: 'Whether callers reach it when it is published.' }),
    liveVersion: z.int().nullable().meta({ description: 'The version that new Runs take; null: there is none.' }),
    createdAt: dateTime,
    deletedAt: dateTime.nullable(),
    invitedPersonIds: z.array(answeredUlid).meta({ description: 'Who is named, whatever its access is now.' }),
  })
  .meta({ description: 'An Agent as operators see it.' })
  .register(adminComponents, { id: 'ManagedAgent' });

/** Checked where it is applied (libs/agents): the wire knows only that it is an object. */
export const manifest = z
  .record(z.string(), z.unknown())
  .meta({ description: 'What a version of an Agent says, see docs/manifests.md. Secrets are references.' });

export const agentVersion = z
  .strictObject({ version: z.int().min(1), createdAt: dateTime, live: z.boolean() })
  .meta({ description: 'A version of an Agent; it never changes.' })
  .register(adminComponents, { id: 'AgentVersion' });

export const appliedManifest = z
  .strictObject({
    name: z.string(),
    agentId: answeredUlid.nullable().meta({ description: 'Null where a dry run would create it.' }),
    change: z.enum(['created', 'updated', 'unchanged']),
    version: z.int().min(1).meta({ description: 'The live version then.' }),
    diff: z
      .string()
      .meta({ description: 'From the live manifest to this one, as YAML; empty when they are the same.' }),
    published: z.boolean(),
    readiness: z.array(readinessProblem).meta({ description: 'Empty: it can run.' }),
  })
  .meta({ description: 'What became, or would become, of one manifest.' })
  .register(adminComponents, { id: 'AppliedManifest' });

export const managedThread = z
  .strictObject({
    id: answeredUlid,
    organizationId: answeredUlid,
    organizationName,
    agentId: answeredUlid,
    agentName,
    userId: z.string().meta({ description: 'Of the application.' }),
    externalRef: z
      .string()
      .nullable()
      .meta({ description: 'The caller’s reference, given at creation; null if there is none.' }),
    ownerPersonId: answeredUlid.nullable().meta({ description: 'Who created it, or to whom it is attributed.' }),
    ownerTokenId: answeredUlid.nullable().meta({ description: 'The service token that created it.' }),
    kind: z.enum(['pet', 'cattle']),
    status: z.enum(['IDLE', 'RUNNING', 'RESCHEDULING', 'TERMINATED']),
    archived: z.boolean(),
    title: z.string().nullable(),
    lastRunId: answeredUlid.nullable(),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ description: 'A Thread as operators see it.' })
  .register(adminComponents, { id: 'ManagedThread' });

export const managedRun = z
  .strictObject({
    id: answeredUlid,
    threadId: answeredUlid,
    organizationId: answeredUlid,
    organizationName,
    agentId: answeredUlid,
    agentName,
    status: z.enum(['queued', 'booting', 'running', 'waiting_input', 'completed', 'failed', 'cancelled', 'expired']),
    trigger: z.enum(['user_prompt', 'retry', 'resume', 'system']),
    createdAt: dateTime,
    startedAt: dateTime.nullable(),
    completedAt: dateTime.nullable(),
    updatedAt: dateTime,
    error: z.strictObject({ code: z.string(), message: z.string(), retryable: z.boolean() }).nullable(),
    mayBeRetried: z.boolean().meta({
      description:
        'Whether retryRun would take it: cancelled, expired or failed so that a retry may help, and still the newest of a Thread that is neither archived nor terminated.',
    }),
    work: z
      .strictObject({
        state: z.enum(['ready', 'leased', 'waiting', 'delayed', 'limited']),
        limitedBy: z
          .enum(['agent', 'organization'])
          .nullable()
          .meta({ description: 'Whose concurrency limit it waits for, or has waited for until it was let in.' }),
        dispatch: z.int(),
        attempt: z.int(),
        holder: z.string().nullable().meta({ description: 'The worker that has claimed it.' }),
        dueAt: dateTime.nullable().meta({ description: 'When it is offered again, requeued or expired.' }),
        since: dateTime.meta({ description: 'Since when it has been in this state.' }),
      })
      .nullable()
      .meta({ description: 'What dispatcher and reaper know of it; null once it has ended.' }),
  })
  .meta({ description: 'A Run as operators see it.' })
  .register(adminComponents, { id: 'ManagedRun' });

export const queueStatus = z
  .strictObject({
    name: z.string(),
    backend: z.enum(['redis', 'postgresql']),
    pausedAt: dateTime.nullable().meta({ description: 'Since when it is paused; null while it runs.' }),
    pausedBy: z
      .array(z.enum(['spool', 'bullmq']))
      .optional()
      .meta({
        description:
          '`spool`: an operator paused it; `bullmq`: a BullMQ tool did. Empty while it runs; older releases omit it.',
      }),
    awaySince: dateTime.nullable().meta({ description: 'Since when the workers cannot reach it.' }),
    offered: z.int().nullable().meta({ description: 'Jobs that no worker has taken yet; null: it does not answer.' }),
    runs: z
      .strictObject({ ready: z.int(), leased: z.int(), waiting: z.int(), delayed: z.int(), limited: z.int() })
      .meta({ description: 'Live Runs by the state of their work row.' }),
    oldestReadyMs: z.number().nullable().meta({ description: 'How long the oldest ready Run has waited.' }),
    workers: z.array(
      z.strictObject({
        holder: z.string(),
        slots: z.int(),
        leased: z.int().meta({ description: 'Runs that it has claimed.' }),
        seenAt: dateTime,
      }),
    ),
  })
  .meta({ description: 'The queue and the workers that are alive.' })
  .register(adminComponents, { id: 'QueueStatus' });

export const auditEntry = z
  .strictObject({
    id: answeredUlid.meta({
      description: 'In the order of the changes, nearly: two at the same moment may be swapped.',
    }),
    occurredAt: dateTime,
    actor: z
      .strictObject({
        kind: z.enum(['operator', 'local']).meta({
          description: 'An operator token, or somebody on a machine that reaches the database (`--local`).',
        }),
        id: z.string().meta({ description: 'Id of the token; of a local one user and host.' }),
        name: z.string(),
      })
      .meta({ description: 'Who.' }),
    action: z.string().meta({ description: 'What, such as `token.revoked`.' }),
    targetId: z.string().nullable().meta({ description: 'Of what; null where it is the whole installation.' }),
    organizationId: answeredUlid.nullable(),
    details: z.record(z.string(), z.unknown()).meta({ description: 'How exactly; never a secret.' }),
  })
  .meta({ description: 'One change: who, what, when. Entries are never changed or removed.' })
  .register(adminComponents, { id: 'AuditEntry' });

export const doctorCheck = z
  .strictObject({
    name: z.string(),
    status: z.enum(['ok', 'warning', 'failed']),
    message: z.string().meta({ description: 'What was found, and what to do about it.' }),
  })
  .meta({ description: 'One thing that was looked at.' })
  .register(adminComponents, { id: 'DoctorCheck' });

export type OrganizationRecord = z.output<typeof organizationRecord>;
export type PersonRecord = z.output<typeof personRecord>;
export type TokenRecord = z.output<typeof tokenRecord>;
export type MintedTokenAnswer = z.output<typeof mintedToken>;
export type ManagedAgent = z.output<typeof managedAgent>;
export type AgentVersionRecord = z.output<typeof agentVersion>;
export type AppliedManifest = z.output<typeof appliedManifest>;
export type ManagedThread = z.output<typeof managedThread>;
export type ManagedRun = z.output<typeof managedRun>;
export type QueueStatus = z.output<typeof queueStatus>;
export type AuditEntry = z.output<typeof auditEntry>;
export type DoctorCheck = z.output<typeof doctorCheck>;
