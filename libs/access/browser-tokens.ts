import { hash } from 'node:crypto';
import { z } from 'zod';
import { isSigned, type SignedTokens } from './signed-tokens.ts';

/** The start of every browser token, so that secret scanners and people recognize it. */
const PREFIX = 'spool_bt_';
const TYPE = 'spool-bt+jwt';
/** The most verified tokens in the cache. The oldest one is dropped first. */
const MAX_CACHED = 20_000;
/**
 * Longer tokens are verified each time, so that the cache has at most a few tens of megabytes. A token with an Agent, a Thread and
 * one origin has about half of these characters.
 */
const MAX_CACHED_LENGTH = 1_024;

export const holderSchema = z.union([z.strictObject({ session: z.string() }), z.strictObject({ token: z.string() })]);

/**
 * The credential of the operator for whom Spool created a browser token. The token stops working with it. `session` is the hash
 * of a session of the console, and `token` is the id of an operator token.
 */
export type BrowserTokenHolder = z.output<typeof holderSchema>;

/** The rights of a browser token. They are limited to those of the service token that created it. */
export interface BrowserClaims {
  /** The service token that created it. */
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
  /** Only tokens of operators have one (docs/operators.md#chat-tokens). */
  holder?: BrowserTokenHolder | undefined;
}

/** Claims with the expiry of their token, milliseconds since 1970. */
export interface VerifiedClaims extends BrowserClaims {
  expiresAt: number;
}

const payloadSchema = z.object({
  sub: z.string(),
  exp: z.int(),
  parent: z.string(),
  agent: z.string().optional(),
  thread: z.string().optional(),
  verbs: z.array(z.string()),
  origins: z.array(z.string()).optional(),
  holder: holderSchema.optional(),
});

/** Makes and verifies browser tokens. */
export class BrowserTokens {
  /** Verified tokens by their hash. A signature never becomes invalid, so only the expiry is checked again. */
  private readonly verified = new Map<string, VerifiedClaims>();

  constructor(private readonly signed: SignedTokens) {}

  get isOn(): boolean {
    return this.signed.isOn;
  }

  /** Returns a token and its expiry. Throws if there is no key. */
  async make(claims: BrowserClaims, expiresInSeconds: number): Promise<{ token: string; expiresAt: string }> {
    const expiresAt = Math.floor(this.signed.now() / 1_000) + expiresInSeconds;
    const { parentId, userId, agentId, threadId, verbs, origins, holder } = claims;
    const payload = {
      ...{ sub: userId, parent: parentId, verbs: [...verbs] },
      ...(agentId !== null && { agent: agentId }),
      ...(threadId !== null && { thread: threadId }),
      ...(origins !== null && { origins: [...origins] }),
      ...(holder !== undefined && { holder }),
    };
    const token = PREFIX + (await this.signed.sign(TYPE, payload, expiresAt));
    return { token, expiresAt: new Date(expiresAt * 1_000).toISOString() };
  }

  /** Returns the claims of a valid token, 'expired' for one that was valid, and null for any other text. */
  async verify(token: string): Promise<VerifiedClaims | 'expired' | null> {
    const key = token.length > MAX_CACHED_LENGTH ? null : hash('sha256', token);
    const known = key === null ? undefined : this.verified.get(key);
    if (key !== null && known !== undefined) {
      if (known.expiresAt > this.signed.now()) return known;
      this.verified.delete(key);
      return 'expired';
    }
    const verified = await this.signed.verify(TYPE, token.slice(PREFIX.length));
    if (verified === null || verified === 'expired') return verified;
    const { success, data } = payloadSchema.safeParse(verified);
    if (!success) return null;
    const { sub, exp, parent, agent = null, thread = null, verbs, origins = null, holder } = data;
    const place = { agentId: agent, threadId: thread };
    const claims = { parentId: parent, userId: sub, ...place, verbs, origins, holder, expiresAt: exp * 1_000 };
    if (key !== null) this.remember(key, claims);
    return claims;
  }

  private remember(key: string, claims: VerifiedClaims): void {
    this.verified.set(key, claims);
    const [oldest] = this.verified.keys();
    if (this.verified.size > MAX_CACHED && oldest !== undefined) this.verified.delete(oldest);
  }
}

/** Returns whether the text has the form of a browser token. */
export const isBrowserToken = (text: string): boolean => text.startsWith(PREFIX) && isSigned(text.slice(PREFIX.length));
