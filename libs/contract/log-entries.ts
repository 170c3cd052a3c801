import { z } from 'zod';
import { components } from './components.ts';
import { answeredUlid, dateTime } from './scalars.ts';

/**
 * The fields of every entry. A variant narrows those that its type fixes (docs/spec/agent-threads-api.md#log-entry).
 */
const entryId = answeredUlid.meta({ description: 'Stable; strictly increasing within the Thread.' });
const common = {
  occurredAt: dateTime,
  runId: answeredUlid.nullable().meta({ description: 'Null if the entry belongs to no Run.' }),
  status: z.literal('available').meta({ description: 'Always `available`.' }),
  durationMs: z.null().meta({ description: 'Always null.' }),
  tokens: z.null().meta({ description: 'Always null.' }),
};

const runId = answeredUlid.meta({ description: 'The Run that the entry belongs to.' });
const durationMs = z.int().nullable().meta({ description: 'Wall-clock time in milliseconds; null if not known.' });
const content = (description: string) => z.string().meta({ description });

const toolCall = {
  runId,
  toolCallId: z.string().min(1).meta({ description: 'Shared by all entries of one tool call.' }),
  toolName: z.string().min(1).meta({ description: 'Name of the tool.' }),
};
const toolInput = z.record(z.string(), z.unknown()).optional().meta({ description: 'All arguments of the call.' });

/** Describes an optional field beyond the contract, sent only on request. */
const extended = (description: string) =>
  `${description} Only with \`extended=true\`; missing in entries written by an earlier release.`;
const file = {
  name: z
    .string()
    .optional()
    .meta({ description: extended('The name of the file at that time.') }),
  kind: z
    .enum(['attachment', 'artifact'])
    .optional()
    .meta({ description: extended('Added through the API, or written by the Agent.') }),
};
const step = {
  messageId: z
    .string()
    .optional()
    .meta({ description: extended('The message that the text belongs to.') }),
  stepId: z
    .string()
    .optional()
    .meta({ description: extended('The model step that the text comes from.') }),
};

/**
 * One variant of the union: `type` selects it, `fields` narrow or extend the common ones. An optional field of a type
 * belongs here.
 */
function variant<Type extends string, Fields extends z.ZodRawShape>(
  id: string,
  type: Type,
  description: string,
  fields: Fields,
) {
  return z
    .strictObject({ id: entryId, type: z.literal(type).meta({ description: `Always \`${type}\`.` }), ...common })
    .extend(fields)
    .meta({ description })
    .register(components, { id });
}

/** The closed set of entry types; each is a component of the OpenAPI documents. */
export const LOG_ENTRIES = [
  variant('UserMessageEntry', 'user.message', 'A message of the user.', {
    runId,
    content: content('The text.'),
    fileIds: z
      .array(answeredUlid)
      .optional()
      .meta({ description: extended('The files that were sent with the message.') }),
  }),
  variant('AgentMessageDeltaEntry', 'agent.message.delta', 'A part of the answer.', {
    runId,
    content: content('The next part of the text.'),
    ...step,
  }),
  variant('AgentThinkingDeltaEntry', 'agent.thinking.delta', 'A part of the model’s thinking.', {
    runId,
    content: content('The next part of the text.'),
    ...step,
  }),
  variant('ToolUseStartedEntry', 'tool.use.started', 'A tool starts; it may take effect from now on.', {
    ...toolCall,
    content: content('The tool’s title.'),
    toolInput,
  }),
  variant('ToolConfirmationRequiredEntry', 'tool.confirmation.required', 'A person must allow or reject a tool call.', {
    ...toolCall,
    content: content('The request id; answer it with `permission_decision`.'),
    toolInput,
    title: z
      .string()
      .optional()
      .meta({ description: extended('The tool’s title.') }),
  }),
  variant('ToolUseCompletedEntry', 'tool.use.completed', 'A tool call ended.', {
    ...toolCall,
    status: z.enum(['available', 'error']).meta({ description: '`error`: the tool failed or was refused.' }),
    content: content('A summary of the result.'),
    durationMs,
  }),
  variant('FileChangedEntry', 'file.changed', 'The Agent wrote a file.', {
    content: content('The id of the file.'),
    ...file,
    action: z
      .enum(['created', 'changed'])
      .optional()
      .meta({ description: extended('What happened to the file.') }),
  }),
  variant('SessionFilesUpdatedEntry', 'session_files.updated', 'A file was attached, detached or deleted.', {
    content: content('The id of the file.'),
    ...file,
    action: z
      .enum(['attached', 'detached', 'deleted'])
      .optional()
      .meta({ description: extended('What happened to the file.') }),
  }),
  variant('SessionStatusEntry', 'session.status', 'The status of the Thread changed.', {
    status: z.enum(['available', 'unsupported']).meta({
      description: '`unsupported`: an entry that this version of the service cannot show; skip it.',
    }),
    content: content(
      'The new state: `RUNNING`, `RESCHEDULING`, `IDLE`, `TERMINATED`, `archived` or `unarchived`. Empty if `unsupported`. ' +
        'With `extended=true` also `decided`: somebody decided a confirmation request.',
    ),
    voidedStepId: z
      .string()
      .optional()
      .meta({ description: extended('The step that was interrupted; discard its text.') }),
    retryAt: dateTime.optional().meta({
      description: extended(
        'With `RESCHEDULING`: when Spool tries the Run again, or earlier if its provider answers again. Absent if that is immediately.',
      ),
    }),
    toolCallId: z
      .string()
      .optional()
      .meta({ description: 'The tool call of the request. Only with the content `decided`.' }),
    requestId: z
      .string()
      .optional()
      .meta({ description: 'The request that was decided. Only with the content `decided`.' }),
    decision: z
      .enum(['allow_once', 'reject_once'])
      .optional()
      .meta({ description: 'The decision. Only with the content `decided`.' }),
  }),
  variant('UsageUpdatedEntry', 'usage.updated', 'The token usage of one model step.', {
    runId,
    content: content('JSON text, `{"inputTokens":…,"outputTokens":…}`.'),
    tokens: z.int().meta({ description: 'The sum of both counts.' }),
  }),
  variant('RunStartedEntry', 'run.started', 'A Run started; once per Run.', {
    runId,
    content: content('The id of the Run.'),
  }),
  variant('RunCompletedEntry', 'run.completed', 'A Run completed.', {
    runId,
    content: content('The id of the Run.'),
    durationMs,
  }),
  variant('RunFailedEntry', 'run.failed', 'A Run failed, was cancelled or expired.', {
    runId,
    status: z.literal('error').meta({ description: 'Always `error`.' }),
    content: content('The message of the error, `cancelled` or `expired`.'),
    durationMs,
    error: z
      .strictObject({
        code: z.string().meta({ description: 'The code of the error; more codes may follow.' }),
        retryable: z.boolean().meta({ description: 'Whether the Run can be retried.' }),
      })
      .optional()
      .meta({ description: extended('The error of a failed Run.') }),
  }),
] as const;

const MAPPING = LOG_ENTRIES.map((entry) => [
  entry.shape.type.value,
  `#/components/schemas/${components.get(entry)!.id}`,
]);

/** An entry as Spool's code handles it: all fields in one shape. Only external readers need the precise variants. */
export interface ThreadEventLogEntry {
  id: string;
  type: (typeof LOG_ENTRIES)[number]['shape']['type']['value'];
  occurredAt: string;
  runId: string | null;
  status: 'available' | 'error' | 'unsupported';
  content: string;
  durationMs: number | null;
  tokens: number | null;
  toolCallId?: string | undefined;
  toolName?: string | undefined;
  toolInput?: Record<string, unknown> | undefined;
  title?: string | undefined;
  name?: string | undefined;
  kind?: 'attachment' | 'artifact' | undefined;
  action?: 'created' | 'changed' | 'attached' | 'detached' | 'deleted' | undefined;
  messageId?: string | undefined;
  stepId?: string | undefined;
  voidedStepId?: string | undefined;
  retryAt?: string | undefined;
  fileIds?: string[] | undefined;
  error?: { code: string; retryable: boolean } | undefined;
  requestId?: string | undefined;
  decision?: 'allow_once' | 'reject_once' | undefined;
}

export const threadEventLogEntry: z.ZodType<ThreadEventLogEntry, ThreadEventLogEntry> = z
  .discriminatedUnion('type', LOG_ENTRIES)
  .meta({
    description:
      'One entry of a Thread’s public event log. It is the same in list and stream and never changes. `type` selects the shape.',
    discriminator: { propertyName: 'type', mapping: Object.fromEntries(MAPPING) as Record<string, string> },
  })
  .register(components, { id: 'ThreadEventLogEntry' });
