import { z } from 'zod';
import { components } from './records.ts';
import { list, queryInteger, text, ulid } from './scalars.ts';

/** Limits of requests (contract, section 8, and decisions, section 7). Lengths are in Unicode characters. */
export const LIMITS = {
  userId: 255,
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
} as const;

export const fileResource = z
  .strictObject({ type: z.literal('file'), file_id: ulid })
  .register(components, { id: 'FileResource', description: 'A ready draft file, uploaded with the same token.' });

const resources = list(fileResource, 0, LIMITS.filesAThread);

export const createThreadBody = z
  .strictObject({
    userId: text(1, LIMITS.userId),
    input: z
      .strictObject({
        type: z.literal('user.message'),
        content: list(
          z.strictObject({ type: z.literal('text'), text: text(1, LIMITS.initialText) }),
          1,
          LIMITS.initialParts,
        ),
      })
      .optional()
      .meta({ description: 'Left out: an empty Thread without a Run.' }),
    resources: resources.optional(),
  })
  .register(components, { id: 'CreateThread' });

const userMessage = z
  .strictObject({
    type: z.literal('user_message'),
    text: text(1, LIMITS.messageText),
    requestId: text(0, LIMITS.requestId).nullish().meta({ description: 'Echoed in the event’s result.' }),
    resources: resources.optional(),
  })
  .register(components, { id: 'UserMessage' });

const permissionDecision = z
  .strictObject({
    type: z.literal('permission_decision'),
    requestId: text(1, LIMITS.requestId).meta({
      minLength: 1,
      maxLength: LIMITS.requestId,
      description: '`content` of the `tool.confirmation.required` entry.',
    }),
    decision: z.enum(['allow_once', 'reject_once']),
  })
  .register(components, { id: 'PermissionDecision' });

const userInterrupt = z
  .strictObject({
    type: z.literal('user_interrupt'),
    runId: ulid.nullish().meta({ description: 'Null or left out: the current Run.' }),
  })
  .register(components, { id: 'UserInterrupt' });

export const sendEventsBody = z
  .strictObject({
    events: list(
      z.discriminatedUnion('type', [userMessage, permissionDecision, userInterrupt]),
      1,
      LIMITS.eventsABatch,
    ),
  })
  .register(components, { id: 'SendEvents' });

export const idempotencyKey = z
  .string()
  .min(1, 'must not be empty')
  .max(LIMITS.idempotencyKey, `must have at most ${LIMITS.idempotencyKey} characters`);

export const listEventsQuery = z
  .object({
    limit: queryInteger(1, LIMITS.logEntries).default(100),
    after: ulid.optional().meta({ format: 'ulid', description: 'The first entries after this event id.' }),
    before: ulid.optional().meta({ format: 'ulid', description: 'The latest entries before this event id.' }),
  })
  .refine(({ after, before }) => after === undefined || before === undefined, 'after and before exclude each other');

export const streamEventsQuery = z.object({
  limit: queryInteger(0, LIMITS.logEntries).default(100).meta({ description: 'How many past entries come first.' }),
  after: ulid.optional().meta({ format: 'ulid', description: 'As Last-Event-ID: resumes after this event id.' }),
  until: z.literal('idle').optional().meta({ description: '`idle` ends the stream once no Run is active.' }),
});

export const listRunsQuery = z.object({
  limit: queryInteger(1, LIMITS.runsAPage).default(LIMITS.runsAPage),
  cursor: ulid.optional().meta({ description: '`nextCursor` of the page before.' }),
});

export type SendEventsBody = z.output<typeof sendEventsBody>;
export type ThreadEventInput = SendEventsBody['events'][number];
export type FileResource = z.output<typeof fileResource>;
