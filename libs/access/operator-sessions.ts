import type { Pool } from 'pg';
import { BY_KEY, namedStatement, type PolicyWatch, type Queryable } from '#platform';
import { KnownCredentials, type Admission } from './known-credentials.ts';
import { findBoundId, makeSessionSecrets, type SessionSecrets } from './session-id.ts';
import { hashToken } from './token-format.ts';
import { limitsOf, type LimitSettings, type TokenLimits } from './token-limits.ts';

const FIND_SESSION = namedStatement(import.meta.dirname, 'find-session.sql');
const TOUCH_SESSION = namedStatement(import.meta.dirname, 'touch-session.sql');
const PURGE_SESSIONS = namedStatement(import.meta.dirname, 'purge-sessions.sql');

/** The maximum lifetime of a session, milliseconds. It also ends after an hour without use (find-session.sql). */
const LIFE_MS = 12 * 3_600_000;

/** The session of a signed-in operator. */
export interface OperatorSession {
  /** The content of the cookie. */
  id: string;
  tokenId: string;
  tokenName: string;
  limits: TokenLimits;
  /** The latest end. The session also ends with its token, with its secret, and after an hour without use. */
  expiresAt: Date;
}

/** The ids of a request's cookies, and the key of its page. */
export interface GivenSession {
  ids: readonly string[];
  pageKey: string;
}

/** Returns the secrets of a new session, which are stored nowhere. The token's secret must still be valid. */
export async function openSession(
  database: Queryable,
  { tokenId, secret }: { tokenId: string; secret: string },
): Promise<SessionSecrets> {
  const secrets = makeSessionSecrets();
  await database.query(
    `insert into operator_sessions (hash, token_id, token_hash, expires_at)
     values ($1, $2, $3, now() + $4 * interval '1 ms')`,
    [hashToken(secrets.id), tokenId, hashToken(secret), LIFE_MS],
  );
  return secrets;
}

/** Ends a session; every process sees it within 5 s. Returns whether the session existed. */
export async function endSession(database: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await database.query('delete from operator_sessions where hash = $1', [hashToken(id)]);
  return (rowCount ?? 0) > 0;
}

/** Deletes expired sessions. */
export async function purgeSessions(database: Queryable): Promise<void> {
  await database.query(PURGE_SESSIONS.text);
}

export interface OperatorSessionsOptions {
  pool: Pool;
  watch: PolicyWatch;
  settings: LimitSettings;
  /** Called if the background write of a use fails. */
  onError: (error: unknown) => void;
}

/** Authenticates operators by their sessions (docs/adr/0016, 0029). */
export class OperatorSessions {
  private readonly known: KnownCredentials<OperatorSession>;

  constructor({ pool, watch, settings, onError }: OperatorSessionsOptions) {
    this.known = new KnownCredentials({
      watch,
      read: async (id) => {
        const values = [hashToken(id)];
        const { rows } = await pool.query<SessionRow>({ ...FIND_SESSION, ...BY_KEY, values });
        const [row] = rows;
        if (row === undefined || row.leftMs <= 0) return null;
        const { tokenId, tokenName, leftMs, requestsPerMinute } = row;
        const limits = limitsOf('operator', { requestsPerMinute, maxStreams: null }, settings);
        return { id, leftMs, value: { id, tokenId, tokenName, limits, expiresAt: new Date(row.expiresAt) } };
      },
      touch: (id) => pool.query({ ...TOUCH_SESSION, values: [hashToken(id)] }),
      onError,
    });
  }

  /**
   * Returns null if no id was made with the key, or its session has ended. Looks up one id at most. Throws the errors of the
   * database and of `admission`.
   */
  async find({ ids, pageKey }: GivenSession, admission?: Admission): Promise<OperatorSession | null> {
    const id = findBoundId(ids, pageKey);
    return id === null ? null : this.known.find(id, admission);
  }

  /** Drops a session from the cache, because this process has ended it. */
  forget(id: string): void {
    this.known.forget(id);
  }
}

interface SessionRow {
  tokenId: string;
  tokenName: string;
  requestsPerMinute: number | null;
  expiresAt: string;
  leftMs: number;
}
