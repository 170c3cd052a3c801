import { z } from 'zod';
import { answeredUlid, dateTime } from '../scalars.ts';
import { adminComponents, managedRun } from './records.ts';
import { count } from './parts.ts';

export const bulkActionName = z
  .enum(['cancel', 'retry'])
  .meta({ description: '`cancel`: live Runs. `retry`: Runs that have ended.' });

const appliedFilter = z.strictObject({
  organizationId: z.string().optional(),
  agentId: z.string().optional(),
  status: managedRun.shape.status.optional(),
  errorCode: z.string().optional(),
  cause: z.string().optional(),
  userId: z.string().optional(),
  externalRef: z.string().optional(),
  since: dateTime.optional(),
  endedSince: dateTime.optional(),
});

export const bulkAction = z
  .strictObject({
    id: answeredUlid,
    action: bulkActionName,
    state: z.enum(['planned', 'running', 'done', 'stopped']).meta({
      description:
        '`planned`: nothing is changed yet. `stopped`: an operator stopped it; the Runs that are `left` stay unchanged.',
    }),
    filter: appliedFilter.meta({ description: 'The filters that chose the Runs.' }),
    runs: count.meta({ description: 'The number of Runs that matched the filters when it was planned.' }),
    done: count.meta({ description: 'Runs that it has cancelled or retried.' }),
    notDone: count.meta({ description: 'Runs that it does not change; `reasons` says why.' }),
    left: count.meta({ description: 'Runs that it has not come to.' }),
    reasons: z
      .array(z.strictObject({ reason: z.string(), count }))
      .meta({ description: 'Why Runs are not changed, the most frequent first; at most 20.' }),
    touches: z
      .strictObject({
        organizations: count,
        agents: count,
        firstCreatedAt: dateTime.nullable(),
        lastCreatedAt: dateTime.nullable(),
      })
      .meta({
        description:
          'The number of organizations and Agents whose Runs matched, and when the first and the last of these Runs were created.',
      }),
    startedBy: z
      .strictObject({ kind: z.enum(['operator', 'local']), id: z.string(), name: z.string() })
      .nullable()
      .meta({ description: 'The operator who started it.' }),
    plannedAt: dateTime,
    startedAt: dateTime.nullable(),
    endedAt: dateTime.nullable(),
  })
  .meta({ description: 'The cancellation or retry of all Runs that match filters.' })
  .register(adminComponents, { id: 'BulkAction' });

export const bulkActionRun = z
  .strictObject({
    id: answeredUlid.meta({ description: 'The Run.' }),
    threadId: answeredUlid,
    outcome: z.enum(['done', 'not_done', 'left']),
    reason: z.string().nullable().meta({ description: 'Why it is not changed.' }),
    newRunId: answeredUlid.nullable().meta({ description: 'The Run that continues it.' }),
  })
  .meta({ description: 'A Run of a bulk action.' })
  .register(adminComponents, { id: 'BulkActionRun' });

export type BulkAction = z.output<typeof bulkAction>;
export type BulkActionRun = z.output<typeof bulkActionRun>;
