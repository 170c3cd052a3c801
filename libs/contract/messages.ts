import { z } from 'zod';
import { components } from './components.ts';
import { answeredUlid, dateTime } from './scalars.ts';

/** The messages of a Thread, as `reduceThread` in libs/domain makes them (docs/api/messages.md). */

const fixed = <Value extends string>(value: Value) => z.literal(value).meta({ description: `Always \`${value}\`.` });

const text = {
  text: z.string().meta({ description: 'The text so far.' }),
  state: z.enum(['streaming', 'done']).meta({ description: '`streaming` while the step may add text.' }),
  stepId: z.string().optional().meta({
    description: 'The model step that wrote it. Missing in messages of the user and of earlier releases.',
  }),
};

const textPart = z
  .strictObject({ type: fixed('text'), ...text })
  .meta({ description: 'Text of the user or of the Agent.' })
  .register(components, { id: 'TextPart' });

const thinkingPart = z
  .strictObject({ type: fixed('thinking'), ...text })
  .meta({ description: 'The model’s thinking in one step. Missing in messages of earlier releases.' })
  .register(components, { id: 'ThinkingPart' });

const approval = z
  .strictObject({
    requestId: z.string().meta({ description: 'The id that `permission_decision` takes.' }),
    state: z.enum(['pending', 'allowed', 'rejected', 'withdrawn']).meta({
      description: '`withdrawn`: the Run ended before anyone decided.',
    }),
  })
  .meta({ description: 'The request to allow or reject a tool call.' })
  .register(components, { id: 'ToolApproval' });

const toolCallPart = z
  .strictObject({
    type: fixed('tool_call'),
    toolCallId: z.string().meta({ description: 'As in the entries of the log.' }),
    toolName: z.string().meta({ description: 'Name of the tool.' }),
    title: z.string().nullable().meta({ description: 'The tool’s title; null if it is not known.' }),
    toolInput: z.record(z.string(), z.unknown()).nullable().meta({
      description: 'All arguments; null if the call ended before it could start.',
    }),
    state: z.enum(['waiting', 'running', 'completed', 'failed', 'stopped']).meta({
      description:
        '`waiting`: a person must decide. `failed`: the tool failed or was rejected. `stopped`: its Run ended before the call did; ' +
        'the call may have taken effect.',
    }),
    summary: z.string().nullable().meta({ description: 'A summary of the result; null before the call ends.' }),
    durationMs: z.int().nullable().meta({ description: 'Wall-clock time in milliseconds; null if not known.' }),
    approval: approval.nullable().meta({ description: 'Null if no one was asked.' }),
  })
  .meta({ description: 'A tool call.' })
  .register(components, { id: 'ToolCallPart' });

const filePart = z
  .strictObject({
    type: fixed('file'),
    fileId: z.string().meta({ description: 'The id of the file.' }),
    name: z.string().nullable().meta({ description: 'The name of the file at that time; null if it is not known.' }),
    kind: z.enum(['attachment', 'artifact']).nullable().meta({
      description: 'Added through the API, or written by the Agent; null if it is not known.',
    }),
    action: z.enum(['created', 'changed', 'attached', 'detached', 'deleted']).nullable().meta({
      description: 'What happened to the file; null if it is not known.',
    }),
  })
  .meta({ description: 'A file that the user sent, or that the Agent wrote or deleted. Appears once in a message.' })
  .register(components, { id: 'FilePart' });

const PARTS = [textPart, thinkingPart, toolCallPart, filePart] as const;

/** Returns the OpenAPI discriminator of a union whose variants are components. */
function discriminator(propertyName: string, variants: readonly (readonly [string, z.ZodType])[]) {
  const mapping = variants.map(([value, schema]) => [value, `#/components/schemas/${components.get(schema)!.id}`]);
  return { propertyName, mapping: Object.fromEntries(mapping) as Record<string, string> };
}

const messagePart = z
  .discriminatedUnion('type', PARTS)
  .meta({
    description: 'A part of a message. `type` selects the shape. More types may follow.',
    discriminator: discriminator(
      'type',
      PARTS.map((part) => [part.shape.type.value, part] as const),
    ),
  })
  .register(components, { id: 'ThreadMessagePart' });

const common = {
  createdAt: dateTime.meta({ description: 'When the message was sent, or the answer began.' }),
  parts: z.array(messagePart).meta({ description: 'In the order in which they began.' }),
};

const userMessage = z
  .strictObject({
    id: z.string().meta({ description: 'The id of its `user.message` entry.' }),
    role: fixed('user'),
    runId: answeredUlid.nullable().meta({ description: 'The Run that it starts.' }),
    ...common,
  })
  .meta({ description: 'A message of the user: its text, then its files.' })
  .register(components, { id: 'ThreadUserMessage' });

const agentMessage = z
  .strictObject({
    id: z.string().meta({ description: 'The id of its Run.' }),
    role: fixed('agent'),
    runId: answeredUlid.meta({ description: 'The Run that writes it.' }),
    ...common,
    status: z.enum(['running', 'completed', 'failed', 'cancelled', 'expired']).meta({
      description: '`running`, also while it waits for a person; otherwise how its Run ended.',
    }),
    error: z
      .strictObject({
        code: z.string().nullable().meta({ description: 'The code of the error; null if it is not known.' }),
        message: z.string().meta({ description: 'A message for people.' }),
        retryable: z.boolean().nullable().meta({ description: 'Whether the Run can be retried; null if not known.' }),
      })
      .nullable()
      .meta({ description: 'The error of a failed Run; otherwise null.' }),
    truncated: z.boolean().optional().meta({
      description: 'True if earlier parts are left out, because the message exceeds 1 MiB; the log has them.',
    }),
  })
  .meta({ description: 'The answer of the Agent: all steps of one Run.' })
  .register(components, { id: 'ThreadAgentMessage' });

export const message = z
  .discriminatedUnion('role', [userMessage, agentMessage])
  .meta({
    description: 'A message of the user or of the Agent.',
    discriminator: discriminator('role', [
      ['user', userMessage],
      ['agent', agentMessage],
    ]),
  })
  .register(components, { id: 'ThreadMessage' });
