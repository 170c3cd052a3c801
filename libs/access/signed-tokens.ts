import { errors, jwtVerify, SignJWT, type JWTPayload } from 'jose';
import { BOUNDS } from '#domain';
import type { SigningKey } from '#platform';

const ALGORITHM = 'HS256';
/** Longer texts are not parsed. The claims of the longest token that Spool makes take about half of it. */
const MAX_LENGTH = BOUNDS.requests.signedToken.value;

/** Returns whether the text has the form of a signed token. */
export const isSigned = (text: string): boolean => text.length <= MAX_LENGTH && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);

/**
 * Makes and verifies JWTs, which need no query. The first key signs, and all keys verify. To replace a key, add the new one, put it
 * first, and remove the old one when its last token has expired.
 */
export class SignedTokens {
  private readonly keys: ReadonlyMap<string, Uint8Array>;

  constructor(
    private readonly ownKeys: readonly SigningKey[],
    /** Milliseconds since 1970. */
    readonly now: () => number = Date.now,
  ) {
    this.keys = new Map(ownKeys.map(({ id, secret }) => [id, secret]));
  }

  /** Returns whether this process has a key to sign with. */
  get isOn(): boolean {
    return this.ownKeys.length > 0;
  }

  /** Returns a token of the type. `expiresAt`: seconds since 1970. Throws if there is no key. */
  async sign(type: string, payload: JWTPayload, expiresAt: number): Promise<string> {
    const [key] = this.ownKeys;
    if (key === undefined) throw new Error('BROWSER_TOKEN_KEYS has no key.');
    const header = { alg: ALGORITHM, typ: type, kid: key.id };
    const issuedAt = Math.floor(this.now() / 1_000);
    // With both times, a client knows the lifetime without trusting its own clock.
    const token = new SignJWT(payload).setIssuedAt(issuedAt).setExpirationTime(expiresAt);
    return token.setProtectedHeader(header).sign(key.secret);
  }

  /**
   * Returns the payload of a valid token, 'expired' for one that was valid, and null for any other text. The type tells the
   * token from other JWTs that the same key signed (RFC 8725, section 3.11).
   */
  async verify(type: string, token: string): Promise<JWTPayload | 'expired' | null> {
    const keyOf = ({ kid = '' }): Uint8Array | Promise<never> =>
      this.keys.get(kid) ?? Promise.reject(new Error('unknown kid'));
    try {
      const options = {
        algorithms: [ALGORITHM],
        typ: type,
        requiredClaims: ['exp'],
        currentDate: new Date(this.now()),
      };
      return (await jwtVerify(token, keyOf, options)).payload;
    } catch (error) {
      return error instanceof errors.JWTExpired ? 'expired' : null;
    }
  }
}
