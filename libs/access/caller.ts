import type { BrowserTokenHolder } from './browser-tokens.ts';
import type { TokenLimits } from './token-limits.ts';

/** The sender of a request, with the facts that the policy needs. */
export type Caller = PersonCaller | ServiceCaller | BrowserCaller | OperatorCaller;

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

/** A user of the application, with a browser token. Has the rights of the service token within the claims of the browser token. */
export interface BrowserCaller {
  kind: 'browser';
  /** The service token that created the browser token. Everything that its users create belongs to it too. */
  tokenId: string;
  /** The limits of the service token, which apply to all of its users together. */
  limits: TokenLimits;
  organizationId: string;
  /** Agents that both tokens may call. */
  agentIds: ReadonlySet<string>;
  userId: string;
  /** The limits of the user, for all browser tokens together, and the key by which they are counted. */
  userLimits: TokenLimits;
  userKey: string;
  /** The only Agent and the only Thread that the token may use; null: all of its user. */
  agentId: string | null;
  threadId: string | null;
  verbs: ReadonlySet<string>;
  /** The origins of pages that may use it; null: all. */
  origins: ReadonlySet<string> | null;
  /** The expiry of the browser token, milliseconds since 1970. */
  expiresAt: number;
  /** The operator's credential with which the browser token ends, if it was created for an operator. */
  holder?: BrowserTokenHolder;
}

/** An operator, who works under /admin/v1 and on the command line. In the Agent Threads API, operators own nothing. */
export interface OperatorCaller {
  kind: 'operator';
  tokenId: string;
  limits: TokenLimits;
  tokenName: string;
  /** The hash of the session, if the operator is signed in to the console. */
  sessionHash?: string;
}
