import { z } from 'zod';
import { components } from './components.ts';
import { ERROR_CODES } from './errors.ts';
import { answeredUlid, dateTime } from './scalars.ts';

const lastMessage = z
  .strictObject({
    role: z.enum(['user', 'agent']).meta({ description: 'The author of the message.' }),
    text: z.string().meta({
      description: 'One line of at most 200 characters. White space is collapsed; `…` marks a cut.',
    }),
    createdAt: dateTime.meta({ description: 'When it was stored.' }),
  })
  .meta({ description: 'A preview of a message.' })
  .register(components, { id: 'MessagePreview' });

/** The records, field by field (docs/spec/agent-threads-api.md#resources). */
const runError = z
  .strictObject({
    code: z.string().min(1).meta({ description: 'Stable code, see docs/run-errors.md.' }),
    message: z.string().min(1).meta({ description: 'A message for people.' }),
    retryable: z.boolean().meta({ description: 'Whether a retry may succeed without other input.' }),
  })
  .meta({ description: 'Why a Run failed.' })
  .register(components, { id: 'RunError' });

const runFinalOutput = z
  .strictObject({
    text: z.string().meta({ description: 'The complete last message of the Agent.' }),
    warnings: z
      .array(
        z.strictObject({
          code: z.literal('unresolved_provider_citation').meta({ description: 'The only code.' }),
          count: z.int().meta({ description: 'The number of provider-specific citations that were removed.' }),
        }),
      )
      .meta({ description: 'Empty when there are none.' }),
  })
  .meta({ description: 'The result of a completed Run.' })
  .register(components, { id: 'RunFinalOutput' });

const confirmationRequest = z
  .strictObject({
    requestId: z
      .string()
      .meta({ description: 'The id that `permission_decision` takes, as in `tool.confirmation.required`.' }),
    toolCallId: z.string().meta({ description: 'The id of the tool call.' }),
    toolName: z.string().meta({ description: 'Name of the tool.' }),
    toolInput: z.record(z.string(), z.unknown()).optional().meta({
      description:
        'All arguments of the call. Missing if the inputs of newer requests in the response exceed about 1 MiB.',
    }),
    state: z.enum(['pending', 'allowed', 'rejected', 'withdrawn']).meta({
      description:
        '`pending`: a person must decide. `withdrawn`: dropped without a decision, for example because the Run ended.',
    }),
    decidedAt: dateTime.nullable().meta({ description: 'Null without a decision.' }),
    decidedBy: z
      .string()
      .nullable()
      .meta({ description: 'The id of the caller who decided; null without a decision.' }),
  })
  .meta({ description: 'A request to confirm a tool call.' })
  .register(components, { id: 'ConfirmationRequest' });

export const runSummary = z
  .strictObject({
    id: answeredUlid,
    status: z
      .enum(['queued', 'booting', 'running', 'waiting_input', 'completed', 'failed', 'cancelled', 'expired'])
      .meta({ description: 'The last four are final. `waiting_input`: a person must decide (`permission_decision`).' }),
    trigger: z.enum(['user_prompt', 'retry', 'resume', 'system']).meta({
      description:
        '`user_prompt`: a message. `retry`: continues a failed Run. `resume`: continues a cancelled or expired Run. `system`: ' +
        'reserved for Runs that the service starts; it starts none today.',
    }),
    createdAt: dateTime,
    startedAt: dateTime
      .nullable()
      .meta({ description: 'The time of the first `run.started`. Null before it, and while the Run is `queued`.' }),
    completedAt: dateTime.nullable().meta({ description: 'Null until the Run ends.' }),
    updatedAt: dateTime,
    error: runError.nullable().meta({ description: 'Set exactly when the status is `failed`.' }),
    finalOutput: runFinalOutput.nullable().meta({
      description: 'The final answer of a completed Run. Null before, and if the Run ended without a message.',
    }),
    requests: z.array(confirmationRequest).optional().meta({
      description: 'Only with `extended=true`: the current state of the Run’s confirmation requests, oldest first.',
    }),
  })
  .meta({ description: 'One execution of the Agent for a Thread.' })
  .register(components, { id: 'RunSummary' });

export const threadSummary = z
  .strictObject({
    id: answeredUlid,
    agent_id: answeredUlid.meta({ description: 'The Agent that the Thread belongs to.' }),
    userId: z.string().meta({
      minLength: 1,
      maxLength: 255,
      description: 'Opaque identifier of the application’s user, given at creation; never changes.',
    }),
    kind: z.enum(['pet', 'cattle']).meta({ description: 'Persistent or one-off Agent.' }),
    source: z.literal('api').meta({ description: 'Always `api`.' }),
    status: z.enum(['IDLE', 'RUNNING', 'RESCHEDULING', 'TERMINATED']).meta({
      description:
        '`IDLE`: no Run is active. `RUNNING`: a Run is active. `RESCHEDULING`: between two Runs or two attempts of a Run. ' +
        '`TERMINATED`: ended permanently.',
    }),
    title: z.string().nullable().meta({
      description:
        'The title that was set, otherwise the first line of the first message, at most 80 characters. Null before the first message.',
    }),
    last_run_id: answeredUlid.nullable().meta({ description: 'The newest Run; null when there is none.' }),
    created_at: dateTime,
    updated_at: dateTime.meta({ description: 'When another field, or the archived state, last changed.' }),
    externalRef: z.string().nullable().optional().meta({
      description: 'Only with `extended=true`: the caller’s reference, given at creation; null if there is none.',
    }),
    lastMessage: lastMessage.nullable().optional().meta({
      description: 'Only with `extended=true`: the last stored message; null before the first.',
    }),
    run: runSummary.nullable().optional().meta({
      description: 'Only in lists with `extended=true`: the newest Run; null if there is none.',
    }),
  })
  .meta({ description: 'A conversation with an Agent.' })
  .register(components, { id: 'ThreadSummary' });

export const threadLinks = z
  .strictObject({ thread: z.string().meta({ description: 'Absolute URL of the Thread.' }) })
  .meta({ description: 'Links to the Thread.' })
  .register(components, { id: 'ThreadLinks' });

export const threadFile = z
  .strictObject({
    id: answeredUlid,
    name: z.string().meta({ description: 'The original file name, without its folders.' }),
    mimeType: z.string().nullable().meta({ description: 'Detected from the bytes, otherwise from the name.' }),
    size: z.int().min(0).meta({ description: 'Bytes.' }),
    kind: z.enum(['attachment', 'artifact']).meta({
      description:
        '`attachment`: added through the API; never changes. `artifact`: written by the Agent, which can change it.',
    }),
    committed: z.boolean().meta({ description: 'Whether it is durably attached to the Thread.' }),
    createdAt: dateTime,
  })
  .meta({ description: 'A file of a Thread.' })
  .register(components, { id: 'ThreadFile' });

export const publicFile = z
  .strictObject({
    id: answeredUlid,
    name: z.string().meta({ description: 'The original file name, without its folders.' }),
    mimeType: z.string().nullable().meta({ description: 'Detected from the bytes, otherwise from the name.' }),
    size: z.int().min(0).meta({ description: 'Bytes.' }),
    createdAt: dateTime,
    threadId: answeredUlid.nullable().optional().meta({
      description: 'The file’s Thread; null for a draft. Only in GET /files/{fileId} with `extended=true`.',
    }),
    kind: z.enum(['attachment', 'artifact']).optional().meta({
      description: 'Added through the API, or written by the Agent. Only in GET /files/{fileId} with `extended=true`.',
    }),
  })
  .meta({ description: 'A draft, or a file of a Thread.' })
  .register(components, { id: 'PublicFile' });

export const agentRecord = z
  .strictObject({
    id: answeredUlid,
    name: z.string().meta({ description: 'Set by its owner.' }),
    kind: z.enum(['pet', 'cattle']).meta({
      description: '`pet`: its Threads share one folder of files. `cattle`: each Thread has its own.',
    }),
    published: z.boolean().meta({ description: 'Always true: an Agent that is not published is rejected.' }),
    description: z.string().meta({ description: 'Set by its owner.' }),
  })
  .meta({ description: 'A published Agent, without its configuration.' })
  .register(components, { id: 'Agent' });

export const errorEnvelope = z
  .strictObject({
    error: z
      .strictObject({
        code: z.enum(ERROR_CODES).meta({ description: 'One of a closed list; docs/api/errors.md explains each code.' }),
        message: z.string().meta({ description: 'For engineers, not for end users. Do not parse it.' }),
        threadId: z
          .string()
          .optional()
          .meta({ description: 'The Thread that has the `externalRef`. Only with `extended=true`.' }),
        reason: z.literal('token_expired').optional().meta({
          description: 'The browser token has expired: renew it and resume. Only with `extended=true`.',
        }),
        decision: z.enum(['allow_once', 'reject_once']).optional().meta({
          description: 'The decision that counts, with the reason `request_decided`. Only with `extended=true`.',
        }),
      })
      .meta({ description: 'The error.' }),
  })
  .meta({ description: 'The body of every response that is not 2xx.' })
  .register(components, { id: 'ErrorEnvelope' });

export type ThreadSummary = z.output<typeof threadSummary>;
export type ThreadLinks = z.output<typeof threadLinks>;
export type ConfirmationRequest = z.output<typeof confirmationRequest>;
export type RunSummary = z.output<typeof runSummary>;
export type ThreadFile = z.output<typeof threadFile>;
export type PublicFile = z.output<typeof publicFile>;
export type AgentRecord = z.output<typeof agentRecord>;
export type ErrorEnvelope = z.output<typeof errorEnvelope>;
