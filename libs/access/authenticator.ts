import type { Pool } from 'pg';
import { namedStatement, PolicyCache, type PolicyWatch } from '#platform';
import type { Caller } from './caller.ts';
import { hashToken, isToken, type TokenKind } from './token-format.ts';

const FIND_TOKEN = namedStatement(import.meta.dirname, 'find-token.sql');
const TOUCH_TOKEN = namedStatement(import.meta.dirname, 'touch-token.sql');

/** More tokens than this are forgotten, the oldest first. */
const MAX_REMEMBERED = 20_000;

/** A second more than the minute of touch-token.sql: what came a moment too early for it would be a minute late. */
const TOUCH_MS = 61_000;

/** By key: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 5_000 };

interface TokenRow {
  id: string;
  kind: TokenKind;
  name: string;
  organizationId: string | null;
  personId: string | null;
  allowAttribution: boolean;
  expiresAt: string | null;
  revokedAt: string | null;
  memberships: string[];
  invitations: string[];
  tokenAgents: string[];
}

interface Known {
  caller: Caller;
  expiresAt: number;
}

export interface AuthenticatorOptions {
  pool: Pool;
  watch: PolicyWatch;
  now?: () => number;
  /** `last_used_at` could not be written; nobody waits for it. */
  onError?: (error: unknown) => void;
}

/** Tells who sends a request from its `Authorization` header. */
export class Authenticator {
  private readonly pool: Pool;
  private readonly now: () => number;
  private readonly onError: (error: unknown) => void;
  private readonly tokens: PolicyCache<Known | null>;
  /** When the use of a token was last written, by its id. */
  private readonly touchedAt = new Map<string, number>();

  constructor({ pool, watch, now = Date.now, onError = () => undefined }: AuthenticatorOptions) {
    this.pool = pool;
    this.tokens = new PolicyCache<Known | null>({
      watch,
      read: (token) => this.read(token),
      maxEntries: MAX_REMEMBERED,
      // A token that we never made is not: anyone can send those; and one that is made later works at once.
      isKept: (known) => known !== null,
    });
    this.now = now;
    this.onError = onError;
  }

  /** Null when there is no valid token in it. Throws what the database throws. */
  async authenticate(authorization: string | undefined): Promise<Caller | null> {
    const token = bearerToken(authorization);
    // A form that we never made is not asked for.
    if (token === null || !isToken(token)) return null;
    const known = await this.tokens.get(token);
    const now = this.now();
    // By the time, each time: what is remembered must not outlive the token.
    if (known === null || known.expiresAt <= now) return null;
    this.touch(known.caller.tokenId, now);
    return known.caller;
  }

  /** Writes that the token is used, once a minute; nobody waits for it. */
  private touch(tokenId: string, now: number): void {
    if (now - (this.touchedAt.get(tokenId) ?? -Infinity) < TOUCH_MS) return;
    this.touchedAt.delete(tokenId);
    this.touchedAt.set(tokenId, now);
    const [oldest] = this.touchedAt.keys();
    if (this.touchedAt.size > MAX_REMEMBERED && oldest !== undefined) this.touchedAt.delete(oldest);
    this.pool.query({ ...TOUCH_TOKEN, values: [tokenId] }).catch(this.onError);
  }

  private async read(token: string): Promise<Known | null> {
    const { rows } = await this.pool.query<TokenRow>({ ...FIND_TOKEN, ...LIMIT, values: [hashToken(token)] });
    const [row] = rows;
    if (row === undefined) return null;
    const expiresAt = row.expiresAt === null ? Infinity : Date.parse(row.expiresAt);
    return { caller: callerOf(row), expiresAt: row.revokedAt === null ? expiresAt : -Infinity };
  }
}

/** RFC 9110: the scheme in any case, then the token. */
function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

function callerOf(row: TokenRow): Caller {
  const { id: tokenId, kind, personId, organizationId, allowAttribution } = row;
  switch (kind) {
    case 'person': {
      const organizationIds = new Set(row.memberships);
      return { kind, tokenId, personId: personId ?? '', organizationIds, invitedAgentIds: new Set(row.invitations) };
    }
    case 'service': {
      const agentIds = new Set(row.tokenAgents);
      return { kind, tokenId, organizationId: organizationId ?? '', agentIds, allowAttribution };
    }
    case 'operator':
      return { kind, tokenId, tokenName: row.name };
  }
}
