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

export type ManagedFile = z.output<typeof managedFile>;
