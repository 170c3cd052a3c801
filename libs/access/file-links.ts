import { z } from 'zod';
import { holderSchema, type BrowserTokenHolder } from './browser-tokens.ts';
import type { Caller } from './caller.ts';
import { isSigned, type SignedTokens } from './signed-tokens.ts';

const TYPE = 'spool-fl+jwt';
/** How long a link works, seconds. */
const LINK_SECONDS = 300;

/** The rights of a file link: those of the caller who created it, for one file. */
export interface LinkClaims {
  fileId: string;
  /** The token of the caller, or the service token of a browser token. */
  tokenId: string;
  /** The user of a browser token, the only Agent and Thread that it may use, and its holder; null for other callers. */
  user: { id: string; agentId: string | null; threadId: string | null; holder?: BrowserTokenHolder | undefined } | null;
}

const payloadSchema = z.object({
  sub: z.string(),
  token: z.string(),
  user: z.string().optional(),
  agent: z.string().optional(),
  thread: z.string().optional(),
  holder: holderSchema.optional(),
});

/** Makes and verifies the signed part of links to files. `<img>` and downloads need these links, because they cannot send a header. */
export class FileLinks {
  constructor(private readonly signed: SignedTokens) {}

  get isOn(): boolean {
    return this.signed.isOn;
  }

  /** Returns a link and its expiry, which is not after that of the caller's browser token. Throws if there is no key. */
  async make(fileId: string, caller: Caller): Promise<{ token: string; expiresAt: string }> {
    const user = caller.kind === 'browser' ? caller : null;
    const latest = user === null ? Infinity : Math.floor(user.expiresAt / 1_000);
    const expiresAt = Math.min(Math.floor(this.signed.now() / 1_000) + LINK_SECONDS, latest);
    const payload = {
      ...{ sub: fileId, token: caller.tokenId },
      ...(user !== null && { user: user.userId }),
      ...(user?.agentId && { agent: user.agentId }),
      ...(user?.threadId && { thread: user.threadId }),
      ...(user?.holder && { holder: user.holder }),
    };
    const token = await this.signed.sign(TYPE, payload, expiresAt);
    return { token, expiresAt: new Date(expiresAt * 1_000).toISOString() };
  }

  /** Returns the claims of a valid link, 'expired' for one that was valid, and null for any other text. */
  async verify(token: string): Promise<LinkClaims | 'expired' | null> {
    const verified = isSigned(token) ? await this.signed.verify(TYPE, token) : null;
    if (verified === null || verified === 'expired') return verified;
    const { success, data } = payloadSchema.safeParse(verified);
    if (!success) return null;
    const { sub: fileId, token: tokenId, user, agent: agentId = null, thread: threadId = null, holder } = data;
    return { fileId, tokenId, user: user === undefined ? null : { id: user, agentId, threadId, holder } };
  }
}
