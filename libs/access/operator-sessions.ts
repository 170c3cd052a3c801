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
  /** The SHA-256 of the id in base64url. Unlike the id, it opens nothing, so browser tokens can name it. */
  hash: string;
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
  /** The sessions by the hash of their id. */
  private readonly known: KnownCredentials<Omit<OperatorSession, 'id'>>;

  constructor({ pool, watch, settings, onError }: OperatorSessionsOptions) {
    this.known = new KnownCredentials({
      watch,
      read: async (hash) => {
        const values = [Buffer.from(hash, 'base64url')];
        const { rows } = await pool.query<SessionRow>({ ...FIND_SESSION, ...BY_KEY, values });
        const [row] = rows;
        if (row === undefined || row.leftMs <= 0) return null;
        const { tokenId, tokenName, leftMs, requestsPerMinute } = row;
        const limits = limitsOf('operator', { requestsPerMinute, maxStreams: null }, settings);
        return { id: hash, leftMs, value: { hash, tokenId, tokenName, limits, expiresAt: new Date(row.expiresAt) } };
      },
      touch: (hash) => pool.query({ ...TOUCH_SESSION, values: [Buffer.from(hash, 'base64url')] }),
      onError,
    });
  }

  /**
   * Returns null if no id was made with the key, or its session has ended. Looks up one id at most. Throws the errors of the
   * database and of `admission`.
   */
  async find({ ids, pageKey }: GivenSession, admission?: Admission): Promise<OperatorSession | null> {
    const id = findBoundId(ids, pageKey);
    const session = id === null ? null : await this.known.find(hashOf(id), admission);
    return id === null || session === null ? null : { ...session, id };
  }

  /**
   * Returns whether the session with this hash is valid, and counts as a use of it. Throws the errors of the database and of
   * `admission`.
   */
  async isValid(hash: string, admission?: Admission): Promise<boolean> {
    return (await this.known.find(hash, admission)) !== null;
  }

  /** Drops a session from the cache, because this process has ended it. */
  forget(id: string): void {
    this.known.forget(hashOf(id));
  }
}

const hashOf = (id: string): string => hashToken(id).toString('base64url');

interface SessionRow {
  tokenId: string;
  tokenName: string;
  requestsPerMinute: number | null;
  expiresAt: string;
  leftMs: number;
}
