import type { TokenLimits } from './token-limits.ts';

/** Who sends a request, with what the policy needs to know of them. */
export type Caller = PersonCaller | ServiceCaller | OperatorCaller;

export interface PersonCaller {
  kind: 'person';
  tokenId: string;
  limits: TokenLimits;
  personId: string;
  /** Organizations that the person is a member of. */
  organizationIds: ReadonlySet<string>;
  /** Agents whose `invited` access names the person. */
  invitedAgentIds: ReadonlySet<string>;
}

export interface ServiceCaller {
  kind: 'service';
  tokenId: string;
  limits: TokenLimits;
  organizationId: string;
  /** Agents that the token may call. */
  agentIds: ReadonlySet<string>;
  allowAttribution: boolean;
}

/** Operators work under /admin/v1 and by the command line: to the Agent Threads API they are callers who own nothing. */
export interface OperatorCaller {
  kind: 'operator';
  tokenId: string;
  limits: TokenLimits;
  tokenName: string;
}
