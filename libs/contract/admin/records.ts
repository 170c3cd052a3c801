import { z } from 'zod';
import { answeredUlid, dateTime } from '../scalars.ts';

/** Schemas that have a name in the OpenAPI document of the admin API. */
export const adminComponents = z.registry<{ id: string }>();

const agentName = z.string().meta({ description: 'The name in the Agent’s live manifest.' });
const organizationName = z.string();

const name = z.string().meta({ description: 'A display name; need not be unique.' });

export const organizationRecord = z
  .strictObject({
    id: answeredUlid,
    name,
    createdAt: dateTime,
    concurrency: z.strictObject({
      runs: z
        .int()
        .nullable()
        .meta({
          description:
            'The maximum number of its Runs that are executed at the same time. ' +
            'Null means `SLOTS_PERCENT_PER_ORGANIZATION` of the installation.',
        }),
    }),
    files: z
      .strictObject({
        count: z.int(),
        bytes: z.int(),
        maxCount: z.int().nullable().meta({ description: 'Null means `ORGANIZATION_FILES` of the installation.' }),
        maxBytes: z.int().nullable().meta({ description: 'Null means `ORGANIZATION_FILE_BYTES` of the installation.' }),
        limits: z.strictObject({ maxCount: z.int().nullable(), maxBytes: z.int().nullable() }).meta({
          description: 'The effective limits, with the settings of this API process. Null means no limit.',
        }),
      })
      .meta({ description: 'Its drafts, attachments, artifacts and files of folders, with their quota.' }),
  })
  .meta({ description: 'Owns Agents and has people as members.' })
  .register(adminComponents, { id: 'Organization' });

export const personRecord = z
  .strictObject({
    id: answeredUlid,
    name,
    createdAt: dateTime,
    organizationIds: z.array(answeredUlid).meta({ description: 'Organizations that the person is a member of.' }),
  })
  .meta({ description: 'A person who can have tokens and own Agents and Threads.' })
  .register(adminComponents, { id: 'Person' });

const ownLimit = z.int().nullable().meta({ description: 'Set for this token; null means the default of its kind.' });

export const tokenRecord = z
  .strictObject({
    id: answeredUlid,
    kind: z
      .enum(['person', 'service', 'operator'])
      .meta({ description: 'Whether a person, a service or an operator uses it.' }),
    name,
    status: z.enum(['active', 'expired', 'revoked']).meta({ description: 'Only active tokens are accepted.' }),
    personId: answeredUlid.nullable().meta({ description: 'The person whose token it is; null for other kinds.' }),
    personName: z.string().nullable(),
    organizationId: answeredUlid
      .nullable()
      .meta({ description: 'The organization of a service token; null for other kinds.' }),
    organizationName: organizationName.nullable(),
    agentIds: z
      .array(answeredUlid)
      .meta({ description: 'Agents that a service token may call; empty for other kinds.' }),
    allowAttribution: z
      .boolean()
      .meta({ description: 'Whether a service token may create Threads on behalf of a person.' }),
    requestsPerMinute: ownLimit,
    maxStreams: ownLimit,
    limits: z
      .strictObject({
        requestsPerMinute: z.int().meta({ description: 'Counted over all processes.' }),
        maxStreams: z.int().nullable().meta({
          description: 'Open event streams per process; null for operators.',
        }),
      })
      .meta({ description: 'The effective limits, with the defaults of this API process.' }),
    createdAt: dateTime,
    expiresAt: dateTime.nullable().meta({ description: 'Null means that it never expires.' }),
    revokedAt: dateTime.nullable(),
    rotatedAt: dateTime.nullable().meta({ description: 'When its secret was last changed.' }),
    oldSecretUntil: dateTime
      .nullable()
      .meta({ description: 'The time until which the secret before the last rotation works.' }),
    lastUsedAt: dateTime.nullable().meta({ description: 'Accurate to the minute.' }),
  })
  .meta({ description: 'A token without its secret. Only the SHA-256 of the secret is stored.' })
  .register(adminComponents, { id: 'Token' });

export const mintedToken = z
  .strictObject({
    token: tokenRecord,
    secret: z.string().meta({ description: 'The secret that callers send. Only this response contains it.' }),
  })
  .meta({ description: 'A token with its new secret.' })
  .register(adminComponents, { id: 'MintedToken' });

export const chatToken = z
  .strictObject({
    token: z.string().meta({
      description: 'A browser token of the Agent Threads API with all verbs. Starts with `spool_bt_`. Not stored.',
    }),
    expiresAt: dateTime,
    userId: z.string().meta({
      description:
        'The user of the token: `operator:` and the name of the operator token, or a hash if the name is too long.',
    }),
    agentId: answeredUlid.meta({ description: 'The only Agent that the token may use.' }),
    organizationId: answeredUlid,
    tokenId: answeredUlid.meta({ description: 'The service token to which the Threads belong.' }),
  })
  .meta({ description: 'A browser token with which an operator chats with one Agent.' })
  .register(adminComponents, { id: 'ChatToken' });

export const readinessProblem = z
  .strictObject({
    message: z.string().meta({ description: 'The message that callers see.' }),
    detail: z.string().meta({ description: 'What exactly is missing.' }),
  })
  .meta({ description: 'Something that the Agent lacks in this API process.' })
  .register(adminComponents, { id: 'ReadinessProblem' });

export const managedAgent = z
  .strictObject({
    id: answeredUlid,
    organizationId: answeredUlid,
    organizationName,
    ownerPersonId: answeredUlid.nullable(),
    name: z
      .string()
      .meta({ description: 'The name in its live manifest. `apply` finds an Agent by organization and name.' }),
    description: z.string(),
    kind: z.enum(['pet', 'cattle']),
    access: z.enum(['organization', 'invited']).meta({
      description: '`organization`: every member may use it. `invited`: only its owner and invited people may.',
    }),
    published: z.boolean(),
    apiEnabled: z.boolean().meta({ description: 'Whether callers can use it when it is published.' }),
    liveVersion: z.int().nullable().meta({ description: 'The version that new Runs use, or null.' }),
    createdAt: dateTime,
    deletedAt: dateTime.nullable(),
    invitedPersonIds: z
      .array(answeredUlid)
      .meta({ description: 'The invited people, also while `access` is `organization`.' }),
  })
  .meta({ description: 'An Agent as operators see it.' })
  .register(adminComponents, { id: 'ManagedAgent' });

/** Checked where it is applied (libs/agents): the wire knows only that it is an object. */
export const manifest = z
  .record(z.string(), z.unknown())
  .meta({ description: 'The manifest of an Agent’s version; see docs/manifests.md. Secrets are references.' });

export const agentVersion = z
  .strictObject({ version: z.int().min(1), createdAt: dateTime, live: z.boolean() })
  .meta({ description: 'A version of an Agent; it never changes.' })
  .register(adminComponents, { id: 'AgentVersion' });

export const appliedManifest = z
  .strictObject({
    name: z.string(),
    agentId: answeredUlid.nullable().meta({ description: 'Null if a dry run would create it.' }),
    change: z.enum(['created', 'updated', 'unchanged']),
    version: z.int().min(1).meta({ description: 'The live version after the change.' }),
    diff: z
      .string()
      .meta({ description: 'The difference from the live manifest to this one, as YAML; empty if they are equal.' }),
    published: z.boolean(),
    readiness: z.array(readinessProblem).meta({ description: 'Empty if the Agent can run.' }),
  })
  .meta({ description: 'The result for one manifest, or the expected result of a dry run.' })
  .register(adminComponents, { id: 'AppliedManifest' });

const runStatus = z.enum([
  'queued',
  'booting',
  'running',
  'waiting_input',
  'completed',
  'failed',
  'cancelled',
  'expired',
]);

export const managedThread = z
  .strictObject({
    id: answeredUlid,
    organizationId: answeredUlid,
    organizationName,
    agentId: answeredUlid,
    agentName,
    userId: z.string().meta({ description: 'The user of the application.' }),
    externalRef: z.string().nullable().meta({ description: 'The caller’s reference, given at creation, or null.' }),
    ownerPersonId: answeredUlid
      .nullable()
      .meta({ description: 'The person who created it, or to whom it is attributed.' }),
    ownerTokenId: answeredUlid.nullable().meta({ description: 'The service token that created it.' }),
    ofChat: z.boolean().meta({
      description: 'Whether chat tokens reach it: those of its Agent, for an operator who is its user.',
    }),
    kind: z.enum(['pet', 'cattle']),
    status: z.enum(['IDLE', 'RUNNING', 'RESCHEDULING', 'TERMINATED']),
    archived: z.boolean(),
    title: z.string().nullable(),
    lastRunId: answeredUlid.nullable(),
    lastRunStatus: runStatus.nullable().optional().meta({
      description: 'The status of that Run; null without one. Earlier releases omit it.',
    }),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ description: 'A Thread as operators see it.' })
  .register(adminComponents, { id: 'ManagedThread' });

/** The same fields as FailureCause of libs/domain. */
const causeFields = {
  summary: z
    .string()
    .meta({ description: 'A few words, such as `HTTP 503 from api.example`. Equal causes have equal words.' }),
  source: z.enum(['provider', 'tool_server', 'worker', 'run']).meta({
    description:
      '`worker`: the worker was lost, or the failure is an error of Spool in this worker. `run`: a limit or rule of the Run.',
  }),
  name: z.string().meta({
    description: 'The provider’s host, the tool server’s name, the worker’s id, or for `run` the code of the error.',
  }),
  status: z.int().optional().meta({ description: 'The HTTP status of the response.' }),
  type: z.string().optional().meta({ description: 'The kind of error in the words of the provider, or its name.' }),
  code: z.string().optional().meta({
    description: 'The code of the provider, of JSON-RPC or of the network, such as `ECONNREFUSED`.',
  }),
  exitCode: z.int().optional().meta({ description: 'The exit status of the tool server’s program.' }),
  signal: z.string().optional().meta({ description: 'The signal that ended the tool server’s program.' }),
  requestId: z.string().optional().meta({ description: 'The id by which the provider finds the request.' }),
  message: z.string().optional().meta({
    description:
      'The message of the provider, the tool server or the error: at most 500 characters, known secrets hidden.',
  }),
  waitedMs: z.int().optional().meta({ description: 'How long the response was waited for, milliseconds.' }),
  step: z.string().optional().meta({ description: 'The last known step of a lost worker.' }),
};

export const failureCause = z
  .strictObject(causeFields)
  .meta({
    description: 'Why an attempt or a tool call failed. Only operators see it. Fields that are not known are absent.',
  })
  .register(adminComponents, { id: 'FailureCause' });

export const managedRun = z
  .strictObject({
    id: answeredUlid,
    threadId: answeredUlid,
    threadTitle: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'The title of its Thread; earlier releases omit it.' }),
    organizationId: answeredUlid,
    organizationName,
    agentId: answeredUlid,
    agentName,
    userId: z.string().optional().meta({ description: 'The user of the application; earlier releases omit it.' }),
    status: runStatus,
    trigger: z.enum(['user_prompt', 'retry', 'resume', 'system']),
    createdAt: dateTime,
    startedAt: dateTime.nullable(),
    completedAt: dateTime.nullable(),
    updatedAt: dateTime,
    error: z.strictObject({ code: z.string(), message: z.string(), retryable: z.boolean() }).nullable(),
    cause: z
      .strictObject({
        ...causeFields,
        attempt: z.int().nullable().meta({ description: 'The number of the attempt that failed.' }),
      })
      .nullable()
      .optional()
      .meta({
        description:
          'Why its last failed attempt failed, also if a later attempt succeeded. Null if it is not known; earlier releases omit it.',
      }),
    remedy: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'What to do about its error. Null without an error; earlier releases omit it.' }),
    mayBeRetried: z.boolean().meta({
      description:
        'Whether retryRun accepts it: cancelled, expired or failed, and the newest Run of a Thread that is neither archived nor terminated.',
    }),
    newerRunId: answeredUlid
      .nullable()
      .optional()
      .meta({ description: 'The newest Run of its Thread, if it is another one; earlier releases omit it.' }),
    work: z
      .strictObject({
        state: z.enum(['ready', 'leased', 'waiting', 'delayed', 'limited']),
        limitedBy: z
          .enum(['agent', 'organization'])
          .nullable()
          .meta({ description: 'Whose concurrency limit it waits for, or has waited for.' }),
        dispatch: z.int(),
        attempt: z.int(),
        holder: z.string().nullable().meta({ description: 'The worker that has claimed it.' }),
        dueAt: dateTime.nullable().meta({ description: 'When it is enqueued again, requeued or expired.' }),
        since: dateTime.meta({ description: 'The time at which it entered this state.' }),
      })
      .nullable()
      .meta({ description: 'Its work item; null when the Run has ended.' }),
  })
  .meta({ description: 'A Run as operators see it.' })
  .register(adminComponents, { id: 'ManagedRun' });

export const queueStatus = z
  .strictObject({
    name: z.string(),
    backend: z.enum(['redis', 'postgresql']),
    pausedAt: dateTime.nullable().meta({ description: 'The time at which it was paused; null if it is not paused.' }),
    pausedBy: z
      .array(z.enum(['spool', 'bullmq']))
      .optional()
      .meta({
        description:
          '`spool`: paused by an operator. `bullmq`: paused by a BullMQ tool. Empty if it is not paused; older releases omit it.',
      }),
    awaySince: dateTime.nullable().meta({ description: 'The time since which workers cannot reach it, or null.' }),
    offered: z
      .int()
      .nullable()
      .meta({ description: 'Jobs that no worker has taken yet; null if the queue does not answer.' }),
    runs: z
      .strictObject({ ready: z.int(), leased: z.int(), waiting: z.int(), delayed: z.int(), limited: z.int() })
      .meta({ description: 'Live Runs by the state of their work item.' }),
    oldestReadyMs: z
      .number()
      .nullable()
      .meta({ description: 'The waiting time of the oldest ready Run, in milliseconds.' }),
    workers: z.array(
      z.strictObject({
        holder: z.string(),
        slots: z.int(),
        leased: z.int().meta({ description: 'Runs that the worker has claimed.' }),
        seenAt: dateTime,
      }),
    ),
  })
  .meta({ description: 'The queue and the live workers.' })
  .register(adminComponents, { id: 'QueueStatus' });

export const auditEntry = z
  .strictObject({
    id: answeredUlid.meta({
      description: 'Ids follow the order of the changes; two changes at the same time may be swapped.',
    }),
    occurredAt: dateTime,
    actor: z
      .strictObject({
        kind: z.enum(['operator', 'local']).meta({
          description:
            '`operator`: an operator token. `local`: someone on a machine that can reach the database (`--local`).',
        }),
        id: z.string().meta({ description: 'Id of the token; for `local`, user and host.' }),
        name: z.string(),
      })
      .meta({ description: 'The actor who made the change.' }),
    action: z.string().meta({ description: 'The action, such as `token.revoked`.' }),
    targetId: z
      .string()
      .nullable()
      .meta({ description: 'The id of the changed resource; null for the whole installation.' }),
    organizationId: answeredUlid.nullable(),
    details: z.record(z.string(), z.unknown()).meta({ description: 'Details of the change; never a secret.' }),
  })
  .meta({ description: 'One change: who, what, when. Entries are never changed or removed.' })
  .register(adminComponents, { id: 'AuditEntry' });

export const doctorCheck = z
  .strictObject({
    name: z.string(),
    status: z.enum(['ok', 'warning', 'failed']),
    message: z.string().meta({ description: 'The result and what to do about it.' }),
  })
  .meta({ description: 'The result of one check.' })
  .register(adminComponents, { id: 'DoctorCheck' });

export type OrganizationRecord = z.output<typeof organizationRecord>;
export type PersonRecord = z.output<typeof personRecord>;
export type TokenRecord = z.output<typeof tokenRecord>;
export type MintedTokenAnswer = z.output<typeof mintedToken>;
export type ManagedAgent = z.output<typeof managedAgent>;
export type AgentVersionRecord = z.output<typeof agentVersion>;
export type AppliedManifest = z.output<typeof appliedManifest>;
export type ManagedThread = z.output<typeof managedThread>;
export type FailureCauseRecord = z.output<typeof failureCause>;
export type ManagedRun = z.output<typeof managedRun>;
export type QueueStatus = z.output<typeof queueStatus>;
export type AuditEntry = z.output<typeof auditEntry>;
export type DoctorCheck = z.output<typeof doctorCheck>;
