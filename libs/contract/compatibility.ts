import { z } from 'zod';
import { createThreadBody, LIMITS, permissionDecision, userInterrupt, userMessage } from './requests.ts';
import { answeredUlid, list, text, ulid } from './scalars.ts';

const idOnly = z.strictObject({ id: answeredUlid });

/**
 * Fields of older descriptions of the interface (docs/spec/agent-threads-api.md#older-names), taken and answered only
 * where `COMPATIBILITY_FIELDS` is `on`: what docs/api/compatibility.md tells. By the component of the OpenAPI
 * document that has them then. Everything else in this folder is as if they did not exist.
 */
export const COMPATIBILITY_FIELDS = {
  CreateThread: z.strictObject({
    client_external_ref: text(1, LIMITS.externalRef)
      .optional()
      .meta({ description: 'Like `externalRef`, but not unique. If both are given, they must be equal.' }),
    attributed_user_id: ulid.optional().meta({
      description: 'The person that the Thread is for. Only for a service token that may attribute.',
    }),
  }),
  UserMessage: z.strictObject({
    clientRequestId: userMessage.shape.requestId.meta({
      description: 'The older name of `requestId`. If both are given, they must be equal.',
    }),
  }),
  ThreadSummary: z.strictObject({
    client_external_ref: z.string().nullable().meta({
      description: 'The `externalRef` or `client_external_ref` of the request that created the Thread, or null.',
    }),
    attributed_user: idOnly
      .nullable()
      .meta({ description: 'The person for whom a service token created it, or null.' }),
    created_by: idOnly.meta({ description: 'The person, or the service token, that created it.' }),
  }),
  ThreadEventResult: z.strictObject({
    clientRequestId: z.string().nullable().meta({ description: 'The same as `requestId`.' }),
  }),
};

export const compatibleCreateThreadBody = createThreadBody
  .extend(COMPATIBILITY_FIELDS.CreateThread.shape)
  .refine(({ externalRef: one, client_external_ref: other }) => (one ?? other) === (other ?? one), {
    path: ['client_external_ref'],
    message: 'must be the same as externalRef',
  });

const compatibleMessage = userMessage
  .extend(COMPATIBILITY_FIELDS.UserMessage.shape)
  .refine(({ requestId: one, clientRequestId: other }) => (one ?? other ?? null) === (other ?? one ?? null), {
    path: ['clientRequestId'],
    message: 'must be the same as requestId',
  });

export const compatibleSendEventsBody = z.strictObject({
  events: list(
    z.discriminatedUnion('type', [compatibleMessage, permissionDecision, userInterrupt]),
    1,
    LIMITS.eventsABatch,
  ),
});

/** With the older fields where they are taken: else they are never there. */
export type ThreadEventInput = z.output<typeof compatibleSendEventsBody>['events'][number];
export type CompatibleThread = z.output<typeof COMPATIBILITY_FIELDS.ThreadSummary>;
export type CompatibleEventResult = z.output<typeof COMPATIBILITY_FIELDS.ThreadEventResult>;
