import { z } from 'zod';
import { components } from '../components.ts';
import { LOG_ENTRIES, threadEventLogEntry } from '../log-entries.ts';
import { answeredUlid, dateTime } from '../scalars.ts';
import { ADMIN_LIMITS } from './parts.ts';
import { adminComponents, failureCause } from './records.ts';

// The entries of the public log have the same names in both documents.
for (const schema of [...LOG_ENTRIES, threadEventLogEntry]) adminComponents.add(schema, components.get(schema)!);

export const managedFile = z
  .strictObject({
    id: answeredUlid,
    kind: z
      .enum(['attachment', 'artifact'])
      .meta({ description: '`attachment`: added by a caller. `artifact`: written by a Run.' }),
    name: z.string(),
    path: z
      .string()
      .nullable()
      .meta({ description: 'The path in the folder of its Agent; null if it is not in the folder.' }),
    mimeType: z.string().nullable(),
    size: z.int().min(0).meta({ description: 'Bytes.' }),
    runId: answeredUlid.nullable().meta({ description: 'The Run that wrote it; null for an attachment.' }),
    createdAt: dateTime,
  })
  .meta({ description: 'A file of a Thread as operators see it.' })
  .register(adminComponents, { id: 'ManagedFile' });

export const waitingRun = z
  .strictObject({
    runId: answeredUlid,
    threadId: answeredUlid,
    threadTitle: z.string().nullable(),
    organizationId: answeredUlid,
    organizationName: z.string(),
    agentId: answeredUlid,
    agentName: z.string(),
    userId: z.string().optional().meta({ description: 'The user of the application; earlier releases omit it.' }),
    since: dateTime.meta({ description: 'The time at which it started to wait.' }),
    expiresAt: dateTime.nullable().meta({ description: 'The time at which the Run expires.' }),
    requests: z.array(
      z.strictObject({
        requestId: answeredUlid,
        toolCallId: z.string(),
        toolName: z.string(),
        title: z.string().meta({ description: 'The tool’s own title.' }),
        toolInput: z.record(z.string(), z.unknown()),
        destructive: z.boolean().optional().meta({
          description: 'Whether the tool says that it deletes or overwrites something; earlier releases omit it.',
        }),
      }),
    ),
  })
  .meta({ description: 'A Run that waits for a person, and its open requests.' })
  .register(adminComponents, { id: 'WaitingRun' });

const tokens = z.int().min(0);
/** Optional, because earlier releases do not send it. */
const eventVersion = z.int().min(1).nullable().optional();

const runText = z.strictObject({
  text: z.string().meta({ description: `At most ${ADMIN_LIMITS.runText} characters, from the beginning.` }),
  length: z.int().min(0).meta({ description: 'Characters of the whole text.' }),
});

export const runTimeline = z
  .strictObject({
    agentVersion: z.int().min(1).nullable().meta({ description: 'The version of the Agent that the Run uses.' }),
    spans: z
      .array(
        z.strictObject({
          kind: z.enum(['queue', 'delay', 'boot', 'model', 'tool', 'waiting']).meta({
            description:
              '`queue`: waits for a worker. `delay`: waits before it is enqueued, after a failure or after the Run that it interrupts. ' +
              '`boot`: from the claim to `run.started`, while agent version, transcript and tool servers are loaded. With workers of ' +
              'earlier releases, the first model step includes the boot. `waiting`: waits for a person.',
          }),
          name: z.string().meta({ description: 'A display name, such as the tool’s title.' }),
          attempt: z.int().nullable().meta({ description: 'The attempt of the claim that it belongs to.' }),
          holder: z.string().nullable().meta({ description: 'The worker of that claim.' }),
          startedAt: dateTime,
          endedAt: dateTime.nullable().meta({ description: 'Null while it is active.' }),
          outcome: z
            .enum(['ok', 'error', 'refused', 'unknown', 'cut'])
            .nullable()
            .meta({
              description:
                '`cut`: its worker was lost or handed the Run over, or the Run was ended. `unknown`: a tool call was cut and is ' +
                'not to be repeated; or the Run ended and the events that were read do not contain the end of the span. Null while it is active.',
            }),
          firstTextAt: dateTime.nullable().meta({ description: 'For a model step, the time of its first text.' }),
          cause: failureCause.nullable().optional().meta({ description: 'Why it failed, if that is known.' }),
          toolCallId: z.string().nullable(),
          inputVersion: eventVersion.meta({
            description: 'Version of the stored event that has the input of the tool call.',
          }),
          outputVersion: eventVersion.meta({
            description:
              'Version of the stored event that has the message of the model, or the result of the tool call.',
          }),
          inputTokens: tokens.nullable(),
          outputTokens: tokens.nullable(),
        }),
      )
      .meta({ description: 'Ordered by start; tool calls may overlap.' }),
    usage: z
      .strictObject({
        inputTokens: tokens,
        outputTokens: tokens,
        cachedInputTokens: tokens.nullable(),
        cost: z.number().nullable().meta({
          description: 'Computed from the prices in the version’s manifest, in their currency; null without prices.',
        }),
      })
      .meta({ description: 'The sum over all model steps.' }),
    losses: z
      .int()
      .min(0)
      .meta({ description: 'How many times a lease of the Run expired. Retryable failures are not counted here.' }),
    input: runText
      .nullable()
      .optional()
      .meta({ description: 'The message that the Run answers. Null for a Run without one.' }),
    output: runText
      .nullable()
      .optional()
      .meta({ description: 'The final text. Null until the Run is completed, and if it ends without text.' }),
    cancelledBy: z
      .strictObject({
        kind: z.enum(['person', 'service', 'operator', 'local']).meta({
          description: 'The owner of the token; `local`: someone on a machine that can reach the database (`--local`).',
        }),
        id: z.string().meta({ description: 'Id of the person or token; for `local`, user and host.' }),
        name: z.string(),
      })
      .nullable()
      .optional()
      .meta({ description: 'Who cancelled the Run. Null if it was not cancelled, or its Thread was terminated.' }),
    isComplete: z
      .boolean()
      .meta({ description: '`false` if the Run has more events than were read, so later spans are missing.' }),
  })
  .meta({ description: 'The timeline and token usage of a Run.' })
  .register(adminComponents, { id: 'RunTimeline' });

export type ManagedFile = z.output<typeof managedFile>;
export type WaitingRun = z.output<typeof waitingRun>;
export type RunTimeline = z.output<typeof runTimeline>;
export type TimelineSpan = RunTimeline['spans'][number];
