import { z } from 'zod';
import { components } from './components.ts';
import { decodePlace } from './page-cursor.ts';
import { runSummary, threadSummary } from './records.ts';
import { base64, list, queryInteger, queryList, text, ulid } from './scalars.ts';

/**
 * Limits of requests (docs/spec/agent-threads-api.md#limits, docs/spec/decisions.md#limits). Lengths are in Unicode
 * characters.
 */
export const LIMITS = {
  userId: 255,
  externalRef: 255,
  title: 255,
  initialText: 32_000,
  messageText: 128_000,
  requestId: 255,
  /** Parts of `input.content`. */
  initialParts: 1_000,
  eventsABatch: 100,
  filesAThread: 100,
  idempotencyKey: 128,
  logEntries: 1_000,
  runsAPage: 100,
  /** Runs whose messages are on one page. */
  answersAPage: 100,
  threadsAPage: 100,
  cursor: 200,
  fileName: 255,
  contentType: 255,
} as const;

const fileResource = z
  .strictObject({
    type: z.literal('file').meta({ description: 'The only value.' }),
    file_id: ulid.meta({
      description: 'Id of a draft that the same caller uploaded for this Agent, in upper or lower case.',
    }),
  })
  .meta({ description: 'A draft file. A request can list each draft only once.' })
  .register(components, { id: 'FileResource' });

const resources = list(fileResource, 0, LIMITS.filesAThread);
const characters = 'NUL and lone surrogates are rejected.';

export const createThreadBody = z
  .strictObject({
    userId: text(1, LIMITS.userId).meta({
      description: `Opaque identifier of the application’s user; cannot be changed. ${characters}`,
    }),
    input: z
      .strictObject({
        type: z.literal('user.message').meta({ description: 'The only value.' }),
        content: list(
          z.strictObject({
            type: z.literal('text').meta({ description: 'The only value.' }),
            text: text(1, LIMITS.initialText).meta({ description: `Length in Unicode characters. ${characters}` }),
          }),
          1,
          LIMITS.initialParts,
        ).meta({ description: 'Parts of one message, joined by line feeds.' }),
      })
      .optional()
      .meta({ description: 'If omitted, the Thread is empty and has no Run.' }),
    resources: resources
      .optional()
      .meta({ description: 'Files for the first Run. Without `input`, files for the next Run.' }),
    externalRef: text(1, LIMITS.externalRef)
      .optional()
      .meta({
        description:
          'Your reference for the Thread; cannot be changed. Unique per token, Agent and `userId`; a duplicate is 409. ' +
          characters,
      }),
  })
  .meta({ description: 'A new Thread.' })
  .register(components, { id: 'CreateThread' });

export const updateThreadBody = z
  .strictObject({
    title: text(1, LIMITS.title)
      .nullable()
      .meta({ description: `The new title. Null restores the title of the first message. ${characters}` }),
  })
  .meta({ description: 'The change of a Thread.' })
  .register(components, { id: 'UpdateThread' });

export const userMessage = z
  .strictObject({
    type: z.literal('user_message').meta({ description: 'A message.' }),
    text: text(1, LIMITS.messageText).meta({
      description: `Length in Unicode characters. An installation can set a lower limit. ${characters}`,
    }),
    requestId: text(0, LIMITS.requestId)
      .nullish()
      .meta({ description: `Returned in the event’s result; has no other effect. ${characters}` }),
    resources: resources.optional().meta({ description: 'Files for the Run that the message starts.' }),
  })
  .meta({
    description:
      'Queues a Run. Rejected while a Run is active, unless the Agent’s `whenBusy` is `enqueue` or `interrupt`.',
  })
  .register(components, { id: 'UserMessage' });

export const permissionDecision = z
  .strictObject({
    type: z.literal('permission_decision').meta({ description: 'An answer to `tool.confirmation.required`.' }),
    requestId: text(1, LIMITS.requestId).meta({
      minLength: 1,
      maxLength: LIMITS.requestId,
      description: '`content` of the `tool.confirmation.required` entry.',
    }),
    decision: z.enum(['allow_once', 'reject_once']).meta({ description: 'Applies to this tool call only.' }),
  })
  .meta({ description: 'Allows or rejects a tool call. The Run continues when its last open request is decided.' })
  .register(components, { id: 'PermissionDecision' });

export const userInterrupt = z
  .strictObject({
    type: z.literal('user_interrupt').meta({ description: 'An interrupt.' }),
    runId: ulid.nullish().meta({ description: 'If null or omitted, the current Run.' }),
  })
  .meta({ description: 'Cancels a Run immediately. A Run that has ended is not changed.' })
  .register(components, { id: 'UserInterrupt' });

export const sendEventsBody = z
  .strictObject({
    events: list(
      z.discriminatedUnion('type', [userMessage, permissionDecision, userInterrupt]).meta({
        discriminator: {
          propertyName: 'type',
          mapping: {
            user_message: '#/components/schemas/UserMessage',
            permission_decision: '#/components/schemas/PermissionDecision',
            user_interrupt: '#/components/schemas/UserInterrupt',
          },
        },
      }),
      1,
      LIMITS.eventsABatch,
    ).meta({ description: 'Applied in this order, all or none. An installation can set a lower limit.' }),
  })
  .meta({ description: 'A batch of events.' })
  .register(components, { id: 'SendEvents' });

const draftFile = z
  .strictObject({ fileId: ulid.meta({ description: 'A draft that the caller uploaded for the Thread’s Agent.' }) })
  .meta({ description: 'Attaches a draft.' })
  .register(components, { id: 'AttachDraft' });

const inlineFile = z
  .strictObject({
    name: text(1, LIMITS.fileName).meta({ description: `Folders in the name are removed. ${characters}` }),
    contentType: text(1, LIMITS.contentType).meta({
      description: `Used only if neither the bytes nor the name reveal the type. ${characters}`,
    }),
    contentBase64: base64.meta({
      description: 'The bytes in base64 with padding: at most 5 MiB when decoded, otherwise 413.',
    }),
  })
  .meta({ description: 'Attaches bytes.' })
  .register(components, { id: 'AttachInline' });

export const attachFileBody = z
  .union([draftFile, inlineFile], { error: describeAttachIssue })
  .meta({ description: 'An uploaded draft, or bytes in the request.' })
  .register(components, { id: 'AttachFile' });

/** Describes what the intended one of the two shapes lacks. A list of what both lack would not help. */
function describeAttachIssue({ input }: { input?: unknown }): string {
  const meant = typeof input === 'object' && input !== null && 'fileId' in input ? draftFile : inlineFile;
  const [issue] = meant.safeParse(input).error?.issues ?? [];
  return issue === undefined
    ? 'must be {fileId} or {name, contentType, contentBase64}'
    : [...issue.path, issue.message].join(': ');
}

export const idempotencyKey = z
  .string()
  .min(1, 'must not be empty')
  .max(LIMITS.idempotencyKey, `must have at most ${LIMITS.idempotencyKey} characters`)
  .meta({
    description:
      'For 24 h, the same key with the same request returns the stored response. With another request it returns 409, and ' +
      'while the first is in progress 409 with `Retry-After`.',
  });

/** A parameter of every operation that answers JSON or a stream. Without it, an answer has only the contract's fields. */
export const extended = z
  .enum(['true', 'false'])
  .default('false')
  .meta({ description: 'With `true`, the response also has the optional fields beyond the contract.' });

const pageSize = 'The maximum number of items in the page.';
const pageCursor = '`nextCursor` of the previous page.';

export const listEventsQuery = z
  .object({
    limit: queryInteger(1, LIMITS.logEntries).default(100).meta({ description: pageSize }),
    after: ulid
      .optional()
      .meta({ description: 'The first entries after this event id. Cannot be combined with `before`.' }),
    before: ulid
      .optional()
      .meta({ description: 'The latest entries before this event id. Cannot be combined with `after`.' }),
  })
  .refine(({ after, before }) => after === undefined || before === undefined, 'after and before cannot be combined');

export const listMessagesQuery = z.object({
  limit: queryInteger(1, LIMITS.answersAPage).default(20).meta({
    description: 'The most Runs whose messages are returned. A Run has at most two: one of the user, and its answer.',
  }),
  before: ulid.optional().meta({ description: '`nextCursor` of the previous page, for older messages.' }),
});

export const streamEventsQuery = z.object({
  limit: queryInteger(0, LIMITS.logEntries)
    .default(100)
    .meta({ description: 'The number of past entries to send first.' }),
  after: ulid.optional().meta({
    description: 'Resumes after this event id; `limit` is ignored. `Last-Event-ID` takes precedence.',
  }),
  until: z.literal('idle').optional().meta({ description: '`idle` ends the stream once no Run is active.' }),
});

export const listThreadsQuery = z.object({
  limit: queryInteger(1, LIMITS.threadsAPage).default(LIMITS.threadsAPage).meta({ description: pageSize }),
  cursor: z
    .string()
    .max(LIMITS.cursor)
    .refine((cursor) => decodePlace(cursor) !== null, 'must be nextCursor of a previous page')
    .optional()
    .meta({ description: `${pageCursor} Any other value is rejected.` }),
  archived: z
    .enum(['true', 'false', 'all'])
    .default('false')
    .meta({ description: '`true`: only archived Threads; `false`: only Threads that are not archived; `all`: both.' }),
  status: threadSummary.shape.status.optional().meta({ description: 'Only Threads with this status.' }),
  userId: text(1, LIMITS.userId)
    .optional()
    .meta({ description: `Only Threads of this user of the application. ${characters}` }),
  externalRef: text(1, LIMITS.externalRef)
    .optional()
    .meta({ description: `Only Threads with this reference. ${characters}` }),
  runStatus: queryList(runSummary.shape.status).optional().meta({
    description: 'Only Threads whose newest Run has one of these statuses, separated by commas.',
  }),
});

export const readContentQuery = z.object({
  disposition: z
    .enum(['attachment', 'inline'])
    .default('attachment')
    .meta({ description: 'The disposition in `Content-Disposition`.' }),
});

export const listRunsQuery = z.object({
  limit: queryInteger(1, LIMITS.runsAPage).default(LIMITS.runsAPage).meta({ description: pageSize }),
  cursor: ulid.optional().meta({ description: pageCursor }),
});

export type AttachFileBody = z.output<typeof attachFileBody>;
