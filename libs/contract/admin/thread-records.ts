import { z } from 'zod';
import { components } from '../components.ts';
import { LOG_ENTRIES, threadEventLogEntry } from '../log-entries.ts';
import { answeredUlid, dateTime } from '../scalars.ts';
import { adminComponents } from './records.ts';

// The entries of the public log have the same names in both documents.
for (const schema of [...LOG_ENTRIES, threadEventLogEntry]) adminComponents.add(schema, components.get(schema)!);

export const managedFile = z
  .strictObject({
    id: answeredUlid,
    kind: z.enum(['attachment', 'artifact']).meta({ description: 'Given by a caller, or made by a Run.' }),
    name: z.string(),
    path: z.string().nullable().meta({ description: 'In the folder of its Agent; null of one beside it.' }),
    mimeType: z.string().nullable(),
    size: z.int().min(0).meta({ description: 'Bytes.' }),
    runId: answeredUlid.nullable().meta({ description: 'The Run that made it; null of an attachment.' }),
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
    since: dateTime.meta({ description: 'Since when it waits.' }),
    expiresAt: dateTime.nullable().meta({ description: 'When it stops waiting, and the Run expires.' }),
    requests: z.array(
      z.strictObject({
        requestId: answeredUlid,
        toolCallId: z.string(),
        toolName: z.string(),
        title: z.string().meta({ description: 'The tool’s own title.' }),
        toolInput: z.record(z.string(), z.unknown()),
      }),
    ),
  })
  .meta({ description: 'A Run that waits for a person, and what it asks.' })
  .register(adminComponents, { id: 'WaitingRun' });

const tokens = z.int().min(0);

export const runTimeline = z
  .strictObject({
    agentVersion: z.int().min(1).nullable().meta({ description: 'The version of its Agent that it keeps.' }),
    spans: z
      .array(
        z.strictObject({
          kind: z.enum(['queue', 'delay', 'boot', 'model', 'tool', 'waiting']).meta({
            description:
              '`queue`: until a worker takes it. `delay`: not to be offered yet, after a failure or after the Run that it interrupts. ' +
              '`boot`: from the claim to `run.started`, while agent version, transcript and tool servers are loaded. Workers of ' +
              'earlier releases stored both at once, so their model steps include the boot. `waiting`: for a person.',
          }),
          name: z.string().meta({ description: 'For people, such as the tool’s title.' }),
          attempt: z.int().nullable().meta({ description: 'Of the claim that it is part of.' }),
          holder: z.string().nullable().meta({ description: 'The worker of that claim.' }),
          startedAt: dateTime,
          endedAt: dateTime.nullable().meta({ description: 'Null while it goes on.' }),
          outcome: z
            .enum(['ok', 'error', 'refused', 'unknown', 'cut'])
            .nullable()
            .meta({
              description:
                '`cut`: its worker was lost or handed the Run over, or the Run was ended. `unknown`: of a tool that was cut and is ' +
                'not to be repeated; or it was under way at the last event that is shown of a Run that has ended. Null while it goes on.',
            }),
          firstTextAt: dateTime.nullable().meta({ description: 'Of a model step: when its first piece of text came.' }),
          toolCallId: z.string().nullable(),
          inputTokens: tokens.nullable(),
          outputTokens: tokens.nullable(),
        }),
      )
      .meta({ description: 'In the order of their beginnings; tool calls may overlap.' }),
    usage: z
      .strictObject({
        inputTokens: tokens,
        outputTokens: tokens,
        cachedInputTokens: tokens.nullable(),
        cost: z.number().nullable().meta({
          description: 'By the prices of its version’s manifest, in the currency of those; null where it has none.',
        }),
      })
      .meta({ description: 'Of all its model steps.' }),
    losses: z.int().min(0).meta({ description: 'How often it lost its worker; failures are none.' }),
    isComplete: z
      .boolean()
      .meta({ description: '`false`: it has more events than are looked at, and the rest is missing.' }),
  })
  .meta({ description: 'What a Run spent its time and tokens on.' })
  .register(adminComponents, { id: 'RunTimeline' });

export type ManagedFile = z.output<typeof managedFile>;
export type WaitingRun = z.output<typeof waitingRun>;
export type RunTimeline = z.output<typeof runTimeline>;
export type TimelineSpan = RunTimeline['spans'][number];
