import type { TokenLimits } from './token-limits.ts';

/** The sender of a request, with the facts that the policy needs. */
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

/** An operator, who works under /admin/v1 and on the command line. In the Agent Threads API, operators own nothing. */
export interface OperatorCaller {
  kind: 'operator';
  tokenId: string;
  limits: TokenLimits;
  tokenName: string;
}
