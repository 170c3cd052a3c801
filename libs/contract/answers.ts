import { z } from 'zod';
import { agentRecord, components, runSummary, threadEventLogEntry, threadLinks, threadSummary } from './records.ts';
import { dateTime } from './scalars.ts';

/** What operations answer (contract, section 4). */
export const threadAnswer = z
  .strictObject({
    thread: threadSummary,
    run: runSummary.nullable().meta({ description: 'The most recent Run; null when there is none.' }),
    links: threadLinks,
  })
  .register(components, { id: 'ThreadAnswer' });

const eventResult = z
  .strictObject({
    type: z.enum(['permission_decision', 'user_interrupt', 'user_message']),
    requestId: z.string().nullable(),
    run: runSummary.nullable().meta({ description: 'The Run created or affected, as it is after the commit.' }),
  })
  .register(components, { id: 'ThreadEventResult' });

export const sendEventsAnswer = z
  .strictObject({
    acceptedAt: dateTime,
    events: z.array(eventResult).meta({ description: 'In the order of the events sent.' }),
    thread: threadSummary,
    warnings: z.array(z.strictObject({ code: z.string(), message: z.string() })),
  })
  .register(components, { id: 'SendEventsAnswer' });

export const listEventsAnswer = z
  .strictObject({
    events: z.array(threadEventLogEntry).meta({ description: 'Oldest first.' }),
    truncated: z.boolean().meta({
      description: 'More entries exist: newer ones with `after`, otherwise older ones.',
    }),
  })
  .register(components, { id: 'ListEventsAnswer' });

export const runAnswer = z.strictObject({ run: runSummary }).register(components, { id: 'RunAnswer' });

export const listRunsAnswer = z
  .strictObject({
    runs: z.array(runSummary).meta({ description: 'Newest first.' }),
    nextCursor: z.string().nullable().meta({ description: 'Null at the end.' }),
  })
  .register(components, { id: 'ListRunsAnswer' });

export const agentAnswer = z.strictObject({ agent: agentRecord }).register(components, { id: 'AgentAnswer' });

export type ThreadAnswer = z.output<typeof threadAnswer>;
export type SendEventsAnswer = z.output<typeof sendEventsAnswer>;
export type ListEventsAnswer = z.output<typeof listEventsAnswer>;
export type RunAnswer = z.output<typeof runAnswer>;
export type ListRunsAnswer = z.output<typeof listRunsAnswer>;
export type AgentAnswer = z.output<typeof agentAnswer>;
