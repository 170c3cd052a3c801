import { agentOperations } from './agent-operations.ts';
import { peopleOperations } from './people-operations.ts';
import { serviceOperations } from './service-operations.ts';

/** What operators are to be able to do, by HTTP under /admin/v1 and by `spool`. Nothing serves it yet. */
export const adminOperations = { ...peopleOperations, ...agentOperations, ...serviceOperations };
