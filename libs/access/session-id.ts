import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Bytes of each half of an id. Guessing 128 random bits, or a key that yields the same 128 bits, is infeasible. */
const HALF_BYTES = 16;
/** 32 bytes in base64url: the form of an id and of a key. */
const FORM = /^[A-Za-z0-9_-]{43}$/;

/** The two secrets of a session. Each is useless without the other. The database has only the hash of the id. */
export interface SessionSecrets {
  /** The secret of the cookie. A browser sends it to every port of the host. */
  id: string;
  /** The secret of the page. Only the page can read it, and it sends it to its own origin only. */
  pageKey: string;
}

/** Makes an id of 16 random bytes and the first 16 bytes of their HMAC-SHA256 under a new key. */
export function makeSessionSecrets(): SessionSecrets {
  const key = randomBytes(2 * HALF_BYTES);
  const random = randomBytes(HALF_BYTES);
  return { id: Buffer.concat([random, sealOf(random, key)]).toString('base64url'), pageKey: key.toString('base64url') };
}

/**
 * Returns the first id that was made with the key, or null. Only a holder of the key can make such ids. So this drops foreign
 * cookies, and a request causes at most one look-up in the database.
 */
export function findBoundId(ids: readonly string[], pageKey: string): string | null {
  if (!FORM.test(pageKey)) return null;
  const key = Buffer.from(pageKey, 'base64url');
  return ids.find((id) => FORM.test(id) && isSealed(Buffer.from(id, 'base64url'), key)) ?? null;
}

function isSealed(id: Buffer, key: Buffer): boolean {
  return timingSafeEqual(id.subarray(HALF_BYTES), sealOf(id.subarray(0, HALF_BYTES), key));
}

const sealOf = (random: Buffer, key: Buffer): Buffer =>
  createHmac('sha256', key).update(random).digest().subarray(0, HALF_BYTES);
