import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type TokenKind = 'person' | 'service' | 'operator';

const MARKS = { person: 'pat', service: 'svc', operator: 'op' } as const satisfies Record<TokenKind, string>;

/** `spool_pat_…`, `spool_svc_…` or `spool_op_…`, then 32 random bytes and a checksum in 48 characters of base64url. */
const PATTERN = /^spool_(pat|svc|op)_([A-Za-z0-9_-]{48})$/;

const RANDOM_BYTES = 32;

export function makeToken(kind: TokenKind): string {
  const start = `spool_${MARKS[kind]}_`;
  const random = randomBytes(RANDOM_BYTES);
  return start + Buffer.concat([random, checksum(start, random)]).toString('base64url');
}

/** Returns whether the form and checksum are valid. Detects typing errors and legacy forms without a query. */
export function isToken(text: string): boolean {
  const [, mark, secret = ''] = PATTERN.exec(text) ?? [];
  if (mark === undefined) return false;
  const bytes = Buffer.from(secret, 'base64url');
  return checksum(`spool_${mark}_`, bytes.subarray(0, RANDOM_BYTES)).equals(bytes.subarray(RANDOM_BYTES));
}

/** Returns the stored hash. SHA-256 is enough, because 32 random bytes cannot be guessed or enumerated. */
export function hashToken(token: string): Buffer {
  return Buffer.from(hash('sha256', token), 'hex');
}

function checksum(start: string, random: Uint8Array): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(random, crc32(start)));
  return sum;
}
