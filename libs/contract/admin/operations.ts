import { agentOperations } from './agent-operations.ts';
import { bulkOperations } from './bulk-operations.ts';
import { peopleOperations } from './people-operations.ts';
import { serviceOperations } from './service-operations.ts';
import { threadOperations } from './thread-operations.ts';

/** Everything that operators can do, by HTTP under /admin/v1 and by `spool`. */
export const adminOperations = {
  ...peopleOperations,
  ...agentOperations,
  ...threadOperations,
  ...bulkOperations,
  ...serviceOperations,
};

export type AdminOperations = typeof adminOperations;
export type AdminOperationName = keyof AdminOperations;
