import type { Pool } from 'pg';
import { namedStatement, PolicyCache, type Moment, type PolicyWatch } from '#platform';
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
  /** Until it expires; null: it never does. */
  leftMs: number | null;
  isRevoked: boolean;
  memberships: string[];
  invitations: string[];
  tokenAgents: string[];
}

interface Known {
  caller: Caller;
  /** When it was read, at the latest, and how long it was good then. */
  readAt: Moment;
  leftMs: number;
}

export interface AuthenticatorOptions {
  pool: Pool;
  watch: PolicyWatch;
  /** `last_used_at` could not be written; nobody waits for it. */
  onError?: (error: unknown) => void;
}

/** Tells who sends a request from its `Authorization` header. */
export class Authenticator {
  private readonly pool: Pool;
  private readonly watch: PolicyWatch;
  private readonly onError: (error: unknown) => void;
  private readonly tokens: PolicyCache<Known | null>;
  /** When the use of a token was last written, by its id. */
  private readonly touchedAt = new Map<string, Moment>();

  constructor({ pool, watch, onError = () => undefined }: AuthenticatorOptions) {
    this.pool = pool;
    this.watch = watch;
    this.tokens = new PolicyCache<Known | null>({
      watch,
      read: (token) => this.read(token),
      maxEntries: MAX_REMEMBERED,
      // A token that we never made is not: anyone can send those; and one that is made later works at once.
      isKept: (known) => known !== null,
    });
    this.onError = onError;
  }

  /** Null when there is no valid token in it. Throws what the database throws. */
  async authenticate(authorization: string | undefined): Promise<Caller | null> {
    const token = bearerToken(authorization);
    // A form that we never made is not asked for.
    if (token === null || !isToken(token)) return null;
    let known = await this.tokens.get(token);
    if (known !== null && this.isOver(known)) {
      // What is remembered must not outlive the token; but our clock may have been set, so the database has the last word.
      this.tokens.forget(token);
      known = await this.tokens.get(token);
    }
    if (known === null || this.isOver(known)) return null;
    this.touch(known.caller.tokenId);
    return known.caller;
  }

  private isOver({ readAt, leftMs }: Known): boolean {
    return leftMs !== Infinity && this.watch.ageOf(readAt) >= leftMs;
  }

  /** Writes that the token is used, once a minute; nobody waits for it. */
  private touch(tokenId: string): void {
    const touchedAt = this.touchedAt.get(tokenId);
    if (touchedAt !== undefined && this.watch.ageOf(touchedAt) < TOUCH_MS) return;
    this.touchedAt.delete(tokenId);
    this.touchedAt.set(tokenId, this.watch.moment());
    const [oldest] = this.touchedAt.keys();
    if (this.touchedAt.size > MAX_REMEMBERED && oldest !== undefined) this.touchedAt.delete(oldest);
    this.pool.query({ ...TOUCH_TOKEN, values: [tokenId] }).catch(this.onError);
  }

  private async read(token: string): Promise<Known | null> {
    // From before it is sent: the token is over a little early rather than late.
    const readAt = this.watch.moment();
    const { rows } = await this.pool.query<TokenRow>({ ...FIND_TOKEN, ...LIMIT, values: [hashToken(token)] });
    const [row] = rows;
    const isGood = row !== undefined && !row.isRevoked && (row.leftMs === null || row.leftMs > 0);
    return isGood ? { caller: callerOf(row), readAt, leftMs: row.leftMs ?? Infinity } : null;
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
