import { agentHandlers, invitationHandlers, versionHandlers, type AgentHandlerParts } from './agent-handlers.ts';
import { bulkHandlers } from './bulk/bulk-handlers.ts';
import type { BulkRunner } from './bulk/bulk-runner.ts';
import { chatTokenHandlers, type ChatTokenParts } from './chat-tokens.ts';
import { checkHandlers, type CheckHandlerParts } from './check-handlers.ts';
import { confirmationHandlers } from './confirmation-handlers.ts';
import type { AdminHandlers } from './handlers.ts';
import { membershipHandlers, organizationHandlers, personHandlers } from './people-handlers.ts';
import { serviceHandlers, type ServiceHandlerParts } from './service-handlers.ts';
import { archiveHandlers, threadContentHandlers, type ThreadContentParts } from './thread-content.ts';
import { runHandlers, threadHandlers, type ThreadHandlerParts } from './thread-handlers.ts';
import { timelineHandlers } from './timeline-handlers.ts';
import { tokenChangeHandlers, tokenHandlers } from './token-handlers.ts';

export type AdminParts = AgentHandlerParts &
  ChatTokenParts &
  CheckHandlerParts &
  ServiceHandlerParts &
  ThreadHandlerParts &
  ThreadContentParts & { bulk: BulkRunner };

/** Returns one handler for each operation, for the admin API and `spool --local`. */
export function adminHandlers(parts: AdminParts): AdminHandlers {
  return {
    ...organizationHandlers(parts),
    ...membershipHandlers(parts.pool),
    ...personHandlers(parts.pool),
    ...tokenHandlers(parts),
    ...tokenChangeHandlers(parts),
    ...chatTokenHandlers(parts),
    ...agentHandlers(parts),
    ...versionHandlers(parts.pool),
    ...invitationHandlers(parts.pool),
    ...threadHandlers(parts),
    ...runHandlers(parts),
    ...bulkHandlers(parts),
    ...archiveHandlers(parts),
    ...threadContentHandlers(parts),
    ...confirmationHandlers(parts),
    ...timelineHandlers(parts),
    ...serviceHandlers(parts),
    ...checkHandlers(parts),
  };
}
