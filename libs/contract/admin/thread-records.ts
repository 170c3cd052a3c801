import { z } from 'zod';
import { answeredUlid, dateTime } from '../scalars.ts';
import { adminComponents } from './records.ts';

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

export type ManagedFile = z.output<typeof managedFile>;
export type WaitingRun = z.output<typeof waitingRun>;
