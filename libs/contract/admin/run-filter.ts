import { ulid } from '../scalars.ts';
import { newName, time } from './parts.ts';
import { managedRun } from './records.ts';

/** The filters of the list of Runs and of bulk actions. */
export const runFilter = {
  organizationId: ulid.optional(),
  agentId: ulid.optional(),
  status: managedRun.shape.status.optional().meta({ description: 'Only Runs with this status.' }),
  errorCode: newName.optional().meta({ description: 'Only Runs that failed with this code.' }),
  cause: newName.optional().meta({
    description:
      'Only Runs whose last failed attempt has this cause: the `summary` of its `cause`, such as `HTTP 503 from api.example`.',
  }),
  userId: newName.optional().meta({ description: 'Only Runs of Threads of this user of the application.' }),
  externalRef: newName.optional().meta({ description: 'Only Runs of Threads with this reference.' }),
  since: time.optional().meta({ description: 'Only Runs created at or after this time.' }),
  endedSince: time.optional().meta({ description: 'Only Runs that ended at or after this time.' }),
};
