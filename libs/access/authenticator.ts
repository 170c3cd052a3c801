import type { Pool } from 'pg';
import { BY_KEY, namedStatement, type PolicyWatch } from '#platform';
import type { Caller } from './caller.ts';
import { KnownCredentials, type Admission, type CredentialStatus } from './known-credentials.ts';
import { hashToken, isToken, type TokenKind } from './token-format.ts';
import { limitsOf, type LimitSettings, type OwnLimits } from './token-limits.ts';

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
  /** Called if the background write of `last_used_at` fails. */
  onError?: (error: unknown) => void;
}

/** Authenticates requests by their `Authorization` header. */
export class Authenticator {
  private readonly known: KnownCredentials<Caller>;

  constructor({ pool, watch, settings, onError = () => undefined }: AuthenticatorOptions) {
    this.known = new KnownCredentials({
      watch,
      read: (token) => readToken(pool, settings, token),
      touch: (tokenId) => pool.query({ ...TOUCH_TOKEN, values: [tokenId] }),
      onError,
    });
  }

  /** Returns null if the header has no valid token. Throws the errors of the database and of `admission`. */
  async authenticate(authorization: string | undefined, admission?: Admission): Promise<Caller | null> {
    const token = bearerToken(authorization);
    // Malformed tokens need no query.
    return token === null || !isToken(token) ? null : this.known.find(token, admission);
  }
}

async function readToken(pool: Pool, settings: LimitSettings, token: string): Promise<CredentialStatus<Caller> | null> {
  const { rows } = await pool.query<TokenRow>({ ...FIND_TOKEN, ...BY_KEY, values: [hashToken(token)] });
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
