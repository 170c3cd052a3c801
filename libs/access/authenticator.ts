import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { BY_KEY, namedStatement, type PolicyWatch } from '#platform';
import { BrowserTokens, isBrowserToken, type BrowserTokenHolder, type VerifiedClaims } from './browser-tokens.ts';
import type { BrowserCaller, Caller, ServiceCaller } from './caller.ts';
import { KnownCredentials, type Admission, type CredentialStatus } from './known-credentials.ts';
import type { LinkClaims } from './file-links.ts';
import { OperatorSessions } from './operator-sessions.ts';
import { SignedTokens } from './signed-tokens.ts';
import { hashToken, isToken, type TokenKind } from './token-format.ts';
import { limitsOf, limitsOfUser, type LimitSettings, type OwnLimits } from './token-limits.ts';

const FIND_TOKEN = namedStatement(import.meta.dirname, 'find-token.sql');
const TOUCH_TOKEN = namedStatement(import.meta.dirname, 'touch-token.sql');

interface TokenRow extends OwnLimits {
  id: string;
  kind: TokenKind;
  name: string;
  organizationId: string | null;
  personId: string | null;
  allowAttribution: boolean;
  /** The time until it expires; null means never. */
  leftMs: number | null;
  isRevoked: boolean;
  memberships: string[];
  invitations: string[];
  tokenAgents: string[];
}

export interface AuthenticatorOptions {
  pool: Pool;
  watch: PolicyWatch;
  settings: LimitSettings;
  browserTokens?: BrowserTokens;
  /** The sessions that hold browser tokens. */
  sessions?: OperatorSessions;
  /** Called if the background write of `last_used_at` fails. */
  onError?: (error: unknown) => void;
}

/** Authenticates requests by their `Authorization` header. */
export class Authenticator {
  private readonly known: KnownCredentials<Caller>;
  /** The service tokens that created browser tokens, and the operator tokens that hold some, by id. */
  private readonly parents: KnownCredentials<Caller>;
  private readonly browserTokens: BrowserTokens;
  private readonly sessions: OperatorSessions;
  private readonly settings: LimitSettings;

  constructor({ pool, watch, settings, browserTokens, sessions, onError = () => undefined }: AuthenticatorOptions) {
    this.settings = settings;
    this.browserTokens = browserTokens ?? new BrowserTokens(new SignedTokens([]));
    this.sessions = sessions ?? new OperatorSessions({ pool, watch, settings, onError });
    const touch = (tokenId: string): Promise<unknown> => pool.query({ ...TOUCH_TOKEN, values: [tokenId] });
    const read = (by: { secret?: string; id?: string }) => readToken(pool, settings, by);
    this.known = new KnownCredentials({ watch, touch, onError, read: (secret) => read({ secret }) });
    this.parents = new KnownCredentials({ watch, touch, onError, read: (id) => read({ id }) });
  }

  /** Returns null if the header has no valid token. Throws the errors of the database and of `admission`. */
  async authenticate(authorization: string | undefined, admission?: Admission): Promise<Caller | null> {
    const token = bearerToken(authorization);
    // Malformed tokens need no query.
    if (token === null) return null;
    if (isBrowserToken(token)) return this.browserCaller(token, admission);
    return isToken(token) ? this.known.find(token, admission) : null;
  }

  /** Returns whether the header has a browser token that was valid and has expired. */
  async hasExpired(authorization: string | undefined): Promise<boolean> {
    const token = bearerToken(authorization);
    return token !== null && isBrowserToken(token) && (await this.browserTokens.verify(token)) === 'expired';
  }

  /**
   * Returns the caller who created a file link, with their current rights; null if their token is no longer valid. Throws the
   * errors of the database and of `admission`.
   */
  async findLinkCaller({ tokenId, user }: LinkClaims, admission: Admission): Promise<Caller | null> {
    const caller = await this.parents.find(tokenId, admission);
    if (user === null) return caller;
    if (caller?.kind !== 'service' || !(await this.isHeld(user.holder, admission))) return null;
    const { id: userId, ...place } = user;
    const claims = { parentId: tokenId, userId, ...place, verbs: ['read'], origins: null, expiresAt: Infinity };
    return browserCallerOf(caller, claims, this.settings);
  }

  /** Needs `Admission` although the signature is valid, because the service token may have been revoked since. */
  private async browserCaller(token: string, admission: Admission | undefined): Promise<BrowserCaller | null> {
    const claims = await this.browserTokens.verify(token);
    if (claims === null || claims === 'expired') return null;
    const parent = await this.parents.find(claims.parentId, admission);
    if (parent?.kind !== 'service' || !(await this.isHeld(claims.holder, admission))) return null;
    return browserCallerOf(parent, claims, this.settings);
  }

  /** Returns whether the holder of a browser token is still valid, and counts as a use of it. True if there is none. */
  private async isHeld(holder: BrowserTokenHolder | undefined, admission: Admission | undefined): Promise<boolean> {
    if (holder === undefined) return true;
    if ('session' in holder) return this.sessions.isValid(holder.session, admission);
    return (await this.parents.find(holder.token, admission))?.kind === 'operator';
  }
}

function browserCallerOf(parent: ServiceCaller, claims: VerifiedClaims, settings: LimitSettings): BrowserCaller {
  const { tokenId, limits, organizationId } = parent;
  const { userId, agentId, threadId, verbs, origins, expiresAt, holder } = claims;
  const agentIds = agentId === null ? parent.agentIds : new Set([agentId].filter((id) => parent.agentIds.has(id)));
  return {
    ...{ kind: 'browser', tokenId, limits, organizationId, userId, agentId, threadId },
    ...{ agentIds, verbs: new Set(verbs), origins: origins && new Set(origins) },
    ...(holder && { holder }),
    expiresAt,
    userLimits: limitsOfUser(settings),
    // Hashed, because a `userId` may have any characters and any length.
    userKey: `${tokenId} user ${hash('sha256', userId)}`,
  };
}

async function readToken(
  pool: Pool,
  settings: LimitSettings,
  { secret, id }: { secret?: string; id?: string },
): Promise<CredentialStatus<Caller> | null> {
  const values = [secret === undefined ? null : hashToken(secret), id];
  const { rows } = await pool.query<TokenRow>({ ...FIND_TOKEN, ...BY_KEY, values });
  const [row] = rows;
  const isValid = row !== undefined && !row.isRevoked && (row.leftMs === null || row.leftMs > 0);
  return isValid ? { value: callerOf(row, settings), id: row.id, leftMs: row.leftMs ?? Infinity } : null;
}

/** Returns the token after the case-insensitive scheme (RFC 9110). */
function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

function callerOf(row: TokenRow, settings: LimitSettings): Caller {
  const { id: tokenId, kind, personId, organizationId, allowAttribution } = row;
  const common = { tokenId, limits: limitsOf(kind, row, settings) };
  switch (kind) {
    case 'person': {
      const organizationIds = new Set(row.memberships);
      const invitedAgentIds = new Set(row.invitations);
      return { kind, ...common, personId: personId ?? '', organizationIds, invitedAgentIds };
    }
    case 'service': {
      const agentIds = new Set(row.tokenAgents);
      return { kind, ...common, organizationId: organizationId ?? '', agentIds, allowAttribution };
    }
    case 'operator':
      return { kind, ...common, tokenName: row.name };
  }
}
