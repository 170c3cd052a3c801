import { randomFillSync } from 'node:crypto';
import { monotonicFactory, type ULIDFactory } from 'ulid';

/** Random bytes are drawn so many at a time: one system call a character made up 6 % of what an append costs here. */
const DRAWN_BYTES = 4_096;
const drawn = new Uint8Array(DRAWN_BYTES);
let next = DRAWN_BYTES;

/** In [0, 1), as `ulid` wants it; of its 256 values each gives one of 32 digits, all equally often. */
function random(): number {
  if (next === DRAWN_BYTES) {
    randomFillSync(drawn);
    next = 0;
  }
  return drawn[next++]! / 256;
}

/**
 * Makes ULIDs that strictly increase, whatever the clock does: `(now = Date.now()) => id`. Within a millisecond each is the
 * one before plus one, so they can be guessed: what protects a Thread is the token.
 */
export function idFactory(): ULIDFactory {
  return monotonicFactory(random);
}

/** The ids of this process for all that is not an event. */
export const newId = idFactory();
