import { z } from 'zod';
import { ERROR_CODES } from './errors.ts';
import { dateTime, ulid } from './scalars.ts';

/** Schemas that have a name in the OpenAPI document. */
export const components = z.registry<{ id: string; description?: string }>();

/** The records of the contract, section 2, field by field. */
export const threadSummary = z
  .strictObject({
    id: ulid,
    agent_id: ulid.meta({ format: 'ulid', description: 'The Agent that the Thread belongs to.' }),
    userId: z.string().meta({
      minLength: 1,
      maxLength: 255,
      description: 'Opaque identifier of the application’s user, given at creation.',
    }),
    kind: z.enum(['pet', 'cattle']).meta({ description: 'Persistent or one-off Agent.' }),
    source: z.literal('api'),
    status: z.enum(['IDLE', 'RUNNING', 'RESCHEDULING', 'TERMINATED']),
    title: z.string().nullable().meta({ description: 'From the first message; null before.' }),
    last_run_id: ulid.nullable().meta({ description: 'The newest Run; null when there is none.' }),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .register(components, { id: 'ThreadSummary' });

export const threadLinks = z
  .strictObject({ thread: z.string().meta({ description: 'Absolute URL of the Thread.' }) })
  .register(components, { id: 'ThreadLinks' });

const runError = z
  .strictObject({
    code: z.string().min(1).meta({ description: 'Stable code, see docs/run-errors.md.' }),
    message: z.string().min(1),
    retryable: z.boolean().meta({ description: 'Whether a retry may succeed without other input.' }),
  })
  .register(components, { id: 'RunError' });

const runFinalOutput = z
  .strictObject({
    text: z.string(),
    warnings: z.array(z.strictObject({ code: z.literal('unresolved_provider_citation'), count: z.int() })),
  })
  .register(components, { id: 'RunFinalOutput' });

export const runSummary = z
  .strictObject({
    id: ulid,
    status: z.enum(['queued', 'booting', 'running', 'waiting_input', 'completed', 'failed', 'cancelled', 'expired']),
    trigger: z.enum(['user_prompt', 'retry', 'resume', 'system']),
    createdAt: dateTime,
    startedAt: dateTime.nullable().meta({ description: 'Null while queued.' }),
    completedAt: dateTime.nullable().meta({ description: 'Null until terminal.' }),
    updatedAt: dateTime,
    error: runError.nullable().meta({ description: 'Not null exactly when the status is `failed`.' }),
    finalOutput: runFinalOutput.nullable().meta({ description: 'The canonical answer of a completed Run.' }),
  })
  .register(components, { id: 'RunSummary' });

export const threadEventLogEntry = z
  .strictObject({
    id: ulid.meta({ format: 'ulid', description: 'Stable; strictly increasing within the Thread.' }),
    type: z.enum([
      'user.message',
      'agent.message.delta',
      'agent.thinking.delta',
      'tool.use.started',
      'tool.confirmation.required',
      'tool.use.completed',
      'file.changed',
      'session_files.updated',
      'session.status',
      'usage.updated',
      'run.started',
      'run.completed',
      'run.failed',
    ]),
    occurredAt: dateTime,
    runId: ulid.nullable(),
    status: z.enum(['available', 'error', 'unsupported']),
    content: z.string(),
    durationMs: z.int().nullable(),
    tokens: z.int().nullable(),
    toolCallId: z.string().min(1).optional().meta({ description: 'Shared by all events of one tool invocation.' }),
    toolName: z.string().min(1).optional(),
    toolInput: z.record(z.string(), z.unknown()).optional(),
  })
  .register(components, { id: 'ThreadEventLogEntry' });

export const agentRecord = z
  .strictObject({
    id: ulid,
    name: z.string(),
    kind: z.enum(['pet', 'cattle']),
    published: z.boolean(),
    description: z.string(),
  })
  .register(components, { id: 'Agent' });

export const errorEnvelope = z
  .strictObject({
    error: z.strictObject({
      code: z.enum(ERROR_CODES),
      message: z.string().meta({ description: 'For engineers, not for end users.' }),
    }),
  })
  .register(components, { id: 'Error' });

export type ThreadSummary = z.output<typeof threadSummary>;
export type ThreadLinks = z.output<typeof threadLinks>;
export type RunSummary = z.output<typeof runSummary>;
export type ThreadEventLogEntry = z.output<typeof threadEventLogEntry>;
export type AgentRecord = z.output<typeof agentRecord>;
export type ErrorEnvelope = z.output<typeof errorEnvelope>;
