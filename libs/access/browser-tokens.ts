import { errors, jwtVerify, SignJWT, type JWTVerifyResult } from 'jose';
import { z } from 'zod';
import type { SigningKey } from '#platform';

/** The start of every browser token, so that secret scanners and people recognize it. */
const PREFIX = 'spool_bt_';
/** Tells these tokens from other JWTs that a leaked or reused key could have signed (RFC 8725, section 3.11). */
const TYPE = 'spool-bt+jwt';
const ALGORITHM = 'HS256';
/** Longer texts are not parsed. The claims of the longest token that Spool makes take about half of it. */
const MAX_LENGTH = 8_192;
/** The maximum of remembered tokens. Drops the oldest first. */
const MAX_CACHED = 20_000;

/** The rights of a browser token. They hold within those of the service token that made it. */
export interface BrowserClaims {
  /** The service token that made it. */
  parentId: string;
  /** The user of the application who holds it. */
  userId: string;
  /** The only Agent that it may use; null: all of the service token. */
  agentId: string | null;
  /** The only Thread that it may use; null: all of its user. */
  threadId: string | null;
  verbs: readonly string[];
  /** The origins of pages that may use it; null: all. */
  origins: readonly string[] | null;
}

const payloadSchema = z.object({
  sub: z.string(),
  exp: z.int(),
  parent: z.string(),
  agent: z.string().optional(),
  thread: z.string().optional(),
  verbs: z.array(z.string()),
  origins: z.array(z.string()).optional(),
});

/**
 * Makes and verifies browser tokens: JWTs that need no query. The first key signs, and all verify, so a key is replaced by
 * putting the new one first, and by removing the old one when its last token has expired.
 */
export class BrowserTokens {
  private readonly keys: ReadonlyMap<string, Uint8Array>;
  /** Verified tokens. A signature never becomes invalid, so only the time is checked again. */
  private readonly verified = new Map<string, { claims: BrowserClaims; expiresAt: number }>();

  constructor(
    private readonly ownKeys: readonly SigningKey[],
    /** Milliseconds since 1970. */
    private readonly now: () => number = Date.now,
  ) {
    this.keys = new Map(ownKeys.map(({ id, secret }) => [id, secret]));
  }

  /** Returns whether this process has a key to sign with. */
  get isOn(): boolean {
    return this.ownKeys.length > 0;
  }

  /** Returns a token and the time of its end. Throws if there is no key. */
  async make(claims: BrowserClaims, expiresInSeconds: number): Promise<{ token: string; expiresAt: string }> {
    const [key] = this.ownKeys;
    if (key === undefined) throw new Error('BROWSER_TOKEN_KEYS has no key.');
    const expiresAt = Math.floor(this.now() / 1_000) + expiresInSeconds;
    const { parentId, userId, agentId, threadId, verbs, origins } = claims;
    const jwt = await new SignJWT({
      ...{ parent: parentId, verbs: [...verbs] },
      ...(agentId !== null && { agent: agentId }),
      ...(threadId !== null && { thread: threadId }),
      ...(origins !== null && { origins: [...origins] }),
    })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid: key.id })
      .setSubject(userId)
      .setExpirationTime(expiresAt)
      .sign(key.secret);
    return { token: PREFIX + jwt, expiresAt: new Date(expiresAt * 1_000).toISOString() };
  }

  /** Returns the claims of a valid token, 'expired' for one that was valid, and null for any other text. */
  async verify(token: string): Promise<BrowserClaims | 'expired' | null> {
    const known = this.verified.get(token);
    if (known !== undefined) return known.expiresAt > this.now() ? known.claims : 'expired';
    try {
      const { payload } = await this.verifyJwt(token.slice(PREFIX.length));
      const { sub, exp, parent, agent = null, thread = null, verbs, origins = null } = payloadSchema.parse(payload);
      const claims = { parentId: parent, userId: sub, agentId: agent, threadId: thread, verbs, origins };
      this.remember(token, { claims, expiresAt: exp * 1_000 });
      return claims;
    } catch (error) {
      return error instanceof errors.JWTExpired ? 'expired' : null;
    }
  }

  private verifyJwt(jwt: string): Promise<JWTVerifyResult> {
    return jwtVerify(jwt, ({ kid = '' }) => this.keys.get(kid) ?? Promise.reject(new Error('unknown kid')), {
      algorithms: [ALGORITHM],
      typ: TYPE,
      requiredClaims: ['sub', 'exp', 'parent', 'verbs'],
      currentDate: new Date(this.now()),
    });
  }

  private remember(token: string, status: { claims: BrowserClaims; expiresAt: number }): void {
    // A copy, because V8 would keep the whole header with a part of it.
    this.verified.set(Buffer.from(token).toString(), status);
    const [oldest] = this.verified.keys();
    if (this.verified.size > MAX_CACHED && oldest !== undefined) this.verified.delete(oldest);
  }
}

/** Returns whether the text has the form of a browser token. */
export const isBrowserToken = (text: string): boolean =>
  text.startsWith(PREFIX) && text.length <= MAX_LENGTH && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text.slice(PREFIX.length));
