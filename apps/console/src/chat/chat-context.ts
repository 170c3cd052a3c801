import { createContext, use } from 'react';
import type { Decision } from '#client';

/** The actions of a message's buttons. The object stays the same while messages change, so that unchanged rows do not render again. */
export interface ChatActions {
  decide: (requestId: string, decision: Decision) => Promise<void>;
  retry: (runId: string) => Promise<unknown>;
}

export const ActionsContext = createContext<ChatActions | null>(null);

export function useChatActions(): ChatActions {
  const actions = use(ActionsContext);
  if (actions === null) throw new Error('A message needs a conversation above it.');
  return actions;
}

/** The ended Run that can be continued: the newest one of the Thread; null if there is none. */
export const RetryableContext = createContext<string | null>(null);
