import { z } from 'zod';
import { components } from './components.ts';
import { threadEventLogEntry } from './log-entries.ts';
import { message } from './messages.ts';
import { agentRecord, publicFile, runSummary, threadFile, threadLinks, threadSummary } from './records.ts';
import { answeredUlid, dateTime } from './scalars.ts';
import { SEND_WARNINGS } from './send-warnings.ts';

function describeWarnings(): string {
  return Object.entries(SEND_WARNINGS)
    .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
    .join(' ');
}

/** The answers of operations (docs/spec/agent-threads-api.md#endpoints). */
export const threadAnswer = z
  .strictObject({
    thread: threadSummary,
    run: runSummary.nullable().meta({ description: 'The most recent Run, or null.' }),
    links: threadLinks,
  })
  .meta({ description: 'A Thread and its Run.' })
  .register(components, { id: 'ThreadAnswer' });

export const eventResult = z
  .strictObject({
    type: z
      .enum(['permission_decision', 'user_interrupt', 'user_message'])
      .meta({ description: 'The type of the event that was sent.' }),
    requestId: z.string().nullable().meta({ description: 'The `requestId` of the event that was sent, or null.' }),
    run: runSummary.nullable().meta({ description: 'The Run that was created or affected, as of the commit.' }),
  })
  .meta({ description: 'The result of one event of a batch.' })
  .register(components, { id: 'ThreadEventResult' });

export const sendEventsAnswer = z
  .strictObject({
    acceptedAt: dateTime.meta({ description: 'When the batch was committed.' }),
    events: z.array(eventResult).meta({ description: 'In the order of the events in the request.' }),
    thread: threadSummary,
    warnings: z
      .array(
        z.strictObject({
          code: z.string().meta({ description: `For programs. ${describeWarnings()} More may follow.` }),
          message: z.string().meta({ description: 'For engineers. Do not parse it.' }),
        }),
      )
      .meta({ description: 'Events that were applied only in part; empty if there are none.' }),
  })
  .meta({ description: 'The whole batch was applied.' })
  .register(components, { id: 'SendEventsAnswer' });

export const listEventsAnswer = z
  .strictObject({
    events: z.array(threadEventLogEntry).meta({ description: 'Oldest first.' }),
    truncated: z.boolean().meta({
      description: 'More entries exist: newer ones with `after`, otherwise older ones.',
    }),
  })
  .meta({ description: 'A window of the event log.' })
  .register(components, { id: 'ListEventsAnswer' });

export const listMessagesAnswer = z
  .strictObject({
    messages: z.array(message).meta({ description: 'Oldest first.' }),
    nextCursor: z.string().nullable().meta({
      description: 'For the page of older messages; null if there are none.',
    }),
    lastEventId: answeredUlid.meta({
      description:
        'Open the event stream with this `Last-Event-ID` to get everything that the newest page does not have.',
    }),
  })
  .meta({ description: 'A page of messages.' })
  .register(components, { id: 'ListMessagesAnswer' });

export const runAnswer = z
  .strictObject({ run: runSummary })
  .meta({ description: 'A Run.' })
  .register(components, { id: 'RunAnswer' });

export const listRunsAnswer = z
  .strictObject({
    runs: z.array(runSummary).meta({ description: 'Newest first.' }),
    nextCursor: z.string().nullable().meta({ description: 'Null at the end.' }),
  })
  .meta({ description: 'A page of Runs.' })
  .register(components, { id: 'ListRunsAnswer' });

export const listThreadsAnswer = z
  .strictObject({
    threads: z.array(threadSummary).meta({ description: 'Newest `updated_at` first.' }),
    nextCursor: z.string().nullable().meta({ description: 'Null at the end.' }),
  })
  .meta({ description: 'A page of Threads.' })
  .register(components, { id: 'ListThreadsAnswer' });

export const threadFileAnswer = z
  .strictObject({ file: threadFile })
  .meta({ description: 'A file of a Thread.' })
  .register(components, { id: 'ThreadFileAnswer' });

export const listFilesAnswer = z
  .strictObject({ files: z.array(threadFile).meta({ description: 'Oldest first.' }) })
  .meta({ description: 'All files of a Thread.' })
  .register(components, { id: 'ListFilesAnswer' });

export const publicFileAnswer = z
  .strictObject({ file: publicFile })
  .meta({ description: 'A file.' })
  .register(components, { id: 'PublicFileAnswer' });

export const okAnswer = z
  .strictObject({ ok: z.literal(true).meta({ description: 'Always true.' }) })
  .meta({ description: 'The change is done, or was done before.' })
  .register(components, { id: 'OkAnswer' });

export const agentAnswer = z
  .strictObject({ agent: agentRecord })
  .meta({ description: 'An Agent.' })
  .register(components, { id: 'AgentAnswer' });

export type ThreadAnswer = z.output<typeof threadAnswer>;
export type SendEventsAnswer = z.output<typeof sendEventsAnswer>;
export type ListEventsAnswer = z.output<typeof listEventsAnswer>;
export type ListMessagesAnswer = z.output<typeof listMessagesAnswer>;
export type RunAnswer = z.output<typeof runAnswer>;
export type ListRunsAnswer = z.output<typeof listRunsAnswer>;
export type ListThreadsAnswer = z.output<typeof listThreadsAnswer>;
export type ThreadFileAnswer = z.output<typeof threadFileAnswer>;
export type ListFilesAnswer = z.output<typeof listFilesAnswer>;
export type PublicFileAnswer = z.output<typeof publicFileAnswer>;
export type OkAnswer = z.output<typeof okAnswer>;
export type AgentAnswer = z.output<typeof agentAnswer>;
