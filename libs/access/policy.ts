import type { ThreadOwner } from '#domain';
import type { Caller, ServiceCaller } from './caller.ts';

/** What the policy needs to know of an agent. */
export interface AgentStanding {
  id: string;
  organizationId: string;
  ownerPersonId: string | null;
  /** Every member of the organization, or its owner and those named. */
  access: 'organization' | 'invited';
  published: boolean;
  apiEnabled: boolean;
  liveVersion: number | null;
  deleted: boolean;
}

export type AgentAccess = 'ok' | 'not_found' | 'forbidden' | 'agent_not_published' | 'service_inactive';

/**
 * In this order (docs/spec/decisions.md#access): gone, then not for this caller whatever its state, then its state.
 */
export function agentAccess(caller: Caller, agent: AgentStanding): AgentAccess {
  if (agent.deleted) return 'not_found';
  if (!mayUseAgent(caller, agent)) return 'forbidden';
  if (!agent.published) return 'agent_not_published';
  return agent.apiEnabled && agent.liveVersion !== null ? 'ok' : 'service_inactive';
}

function mayUseAgent(caller: Caller, agent: AgentStanding): boolean {
  switch (caller.kind) {
    case 'person':
      if (!caller.organizationIds.has(agent.organizationId)) return false;
      if (agent.access === 'organization') return true;
      return agent.ownerPersonId === caller.personId || caller.invitedAgentIds.has(agent.id);
    case 'service':
      return caller.organizationId === agent.organizationId && caller.agentIds.has(agent.id);
    case 'operator':
      return false;
  }
}

/** Whom a Thread or a draft belongs to, as its row has it. */
export interface Ownership {
  owner_person_id: string | null;
  owner_service_token_id: string | null;
}

/**
 * Whether the Thread or draft is visible to the caller (docs/spec/decisions.md#visibility): the person whose token
 * created it or to whom it is attributed, and the service token that created it. `agentAccess` of its agent comes
 * after.
 */
export function isOwn(caller: Caller, owned: Ownership): boolean {
  switch (caller.kind) {
    case 'person':
      return owned.owner_person_id === caller.personId;
    case 'service':
      return owned.owner_service_token_id === caller.tokenId;
    case 'operator':
      return false;
  }
}

/** Whether the caller may create Threads for a person (docs/spec/agent-threads-api.md#authentication). */
export function mayAttribute(caller: Caller): caller is ServiceCaller {
  return caller.kind === 'service' && caller.allowAttribution;
}

/** Whose a Thread or a draft is that the caller creates; of a Thread that it attributes to a person, theirs too. */
export function ownerFor(caller: Caller, attributedTo: string | null = null): ThreadOwner {
  return {
    personId: caller.kind === 'person' ? caller.personId : attributedTo,
    serviceTokenId: caller.kind === 'service' ? caller.tokenId : null,
  };
}
