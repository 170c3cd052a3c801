import type { ThreadOwner } from '#domain';
import type { BrowserCaller, Caller, ServiceCaller } from './caller.ts';

/** The facts of an agent that the policy needs. */
export interface PolicyAgent {
  id: string;
  organizationId: string;
  ownerPersonId: string | null;
  /** `organization`: every member of the organization. `invited`: the owner and the invited people. */
  access: 'organization' | 'invited';
  published: boolean;
  apiEnabled: boolean;
  liveVersion: number | null;
  deleted: boolean;
}

export type AgentAccess = 'ok' | 'not_found' | 'forbidden' | 'agent_not_published' | 'service_inactive';

/** Checks in this order (docs/spec/decisions.md#access): deletion, permission of the caller, state of the agent. */
export function agentAccess(caller: Caller, agent: PolicyAgent): AgentAccess {
  if (agent.deleted) return 'not_found';
  if (!mayUseAgent(caller, agent)) return 'forbidden';
  if (!agent.published) return 'agent_not_published';
  return agent.apiEnabled && agent.liveVersion !== null ? 'ok' : 'service_inactive';
}

function mayUseAgent(caller: Caller, agent: PolicyAgent): boolean {
  switch (caller.kind) {
    case 'person':
      if (!caller.organizationIds.has(agent.organizationId)) return false;
      if (agent.access === 'organization') return true;
      return agent.ownerPersonId === caller.personId || caller.invitedAgentIds.has(agent.id);
    case 'service':
    case 'browser':
      return caller.organizationId === agent.organizationId && caller.agentIds.has(agent.id);
    case 'operator':
      return false;
  }
}

/** The owners in the row of a Thread or a draft. */
export interface Ownership {
  owner_person_id: string | null;
  owner_service_token_id: string | null;
}

/** A Thread or a draft, which has no Thread yet, with its owners. */
export interface Owned extends Ownership {
  agent_id: string | null;
  thread_id: string | null;
}

/**
 * Returns whether the Thread or draft is visible to the caller (docs/spec/decisions.md#visibility). It is visible to the person
 * who created it or to whom it is attributed, to the service token that created it, and to browser tokens of that service token
 * and of the user `userId`, within their claims. Check `agentAccess` afterwards.
 */
export function isOwn(caller: Caller, owned: Owned, userId: string | null): boolean {
  switch (caller.kind) {
    case 'person':
      return owned.owner_person_id === caller.personId;
    case 'service':
      return owned.owner_service_token_id === caller.tokenId;
    case 'browser':
      return owned.owner_service_token_id === caller.tokenId && userId === caller.userId && isClaimed(caller, owned);
    case 'operator':
      return false;
  }
}

/** Returns whether the claims of a browser token include the Thread or draft. A draft has an Agent, but no Thread yet. */
function isClaimed({ agentId, threadId }: BrowserCaller, owned: Owned): boolean {
  if (agentId !== null && owned.agent_id !== agentId) return false;
  return threadId === null || owned.thread_id === null || owned.thread_id === threadId;
}

/** Returns whether the caller may create Threads for a person (docs/spec/agent-threads-api.md#authentication). */
export function mayAttribute(caller: Caller): caller is ServiceCaller {
  return caller.kind === 'service' && caller.allowAttribution;
}

/** Returns the owners of a Thread or a draft that the caller creates, including the person of an attribution. */
export function ownerFor(caller: Caller, attributedTo: string | null = null): ThreadOwner {
  return {
    personId: caller.kind === 'person' ? caller.personId : attributedTo,
    serviceTokenId: caller.kind === 'service' || caller.kind === 'browser' ? caller.tokenId : null,
  };
}

/** Returns the owner of a draft that the caller uploads. Also the owner of the drafts that it can attach; null: any user. */
export function uploaderFor(caller: Caller): ThreadOwner & { userId: string | null } {
  return { ...ownerFor(caller), userId: caller.kind === 'browser' ? caller.userId : null };
}
