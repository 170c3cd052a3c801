import type { Pool } from 'pg';
import { namedStatement } from '#platform';
import type { Caller } from './caller.ts';
import { hashToken, isToken, type TokenKind } from './token-format.ts';

const FIND_TOKEN = namedStatement(import.meta.dirname, 'find-token.sql');
const TOUCH_TOKEN = namedStatement(import.meta.dirname, 'touch-token.sql');

/**
 * How long a token is remembered, milliseconds. A revocation must be seen within 5 s, open streams included: this leaves
 * them 3 s to ask again. One query a token every two seconds is nothing.
 */
const REMEMBER_MS = 2_000;

/** More tokens than this are forgotten, oldest first: unknown ones are remembered too, and anyone can send those. */
const MAX_REMEMBERED = 20_000;

/** By key: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 5_000 };

interface TokenRow {
  id: string;
  kind: TokenKind;
  organizationId: string | null;
  personId: string | null;
  allowAttribution: boolean;
  expiresAt: string | null;
  revokedAt: string | null;
  useIsNews: boolean;
  memberships: string[];
  invitations: string[];
  tokenAgents: string[];
}

interface Known {
  caller: Caller;
  expiresAt: number;
}

interface Remembered {
  until: number;
  /** One lookup for all the requests that wait for it. */
  known: Promise<Known | null>;
}

export interface AuthenticatorOptions {
  pool: Pool;
  now?: () => number;
  /** `last_used_at` could not be written; nobody waits for it. */
  onError?: (error: unknown) => void;
}

/** Tells who sends a request from its `Authorization` header. */
export class Authenticator {
  private readonly pool: Pool;
  private readonly now: () => number;
  private readonly onError: (error: unknown) => void;
  private readonly remembered = new Map<string, Remembered>();

  constructor({ pool, now = Date.now, onError = () => undefined }: AuthenticatorOptions) {
    this.pool = pool;
    this.now = now;
    this.onError = onError;
  }

  /** Null when there is no valid token in it. Throws what the database throws. */
  async authenticate(authorization: string | undefined): Promise<Caller | null> {
    const token = bearerToken(authorization);
    if (token === null) return null;
    const known = await this.lookUp(token);
    // By the time, each time: an answer that is remembered must not outlive the token.
    return known !== null && known.expiresAt > this.now() ? known.caller : null;
  }

  private lookUp(token: string): Promise<Known | null> {
    const now = this.now();
    const seen = this.remembered.get(token);
    if (seen !== undefined && seen.until > now) return seen.known;
    // A form that we never made needs no place in the memory.
    if (seen === undefined && !isToken(token)) return NOBODY;
    const known = this.read(token);
    this.remember(token, { until: now + REMEMBER_MS, known });
    return known;
  }

  private remember(token: string, entry: Remembered): void {
    this.remembered.delete(token);
    this.remembered.set(token, entry);
    entry.known.catch(() => {
      if (this.remembered.get(token) === entry) this.remembered.delete(token);
    });
    if (this.remembered.size <= MAX_REMEMBERED) return;
    const [oldest] = this.remembered.keys();
    if (oldest !== undefined) this.remembered.delete(oldest);
  }

  private async read(token: string): Promise<Known | null> {
    const { rows } = await this.pool.query<TokenRow>({ ...FIND_TOKEN, ...LIMIT, values: [hashToken(token)] });
    const [row] = rows;
    if (row === undefined || row.revokedAt !== null) return null;
    if (row.useIsNews) this.pool.query({ ...TOUCH_TOKEN, values: [row.id] }).catch(this.onError);
    return { caller: callerOf(row), expiresAt: row.expiresAt === null ? Infinity : Date.parse(row.expiresAt) };
  }
}

const NOBODY = Promise.resolve(null);

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
      return { kind, tokenId };
  }
}
