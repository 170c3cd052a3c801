/** A bare ULID (docs/spec/agent-threads-api.md#identifiers): either case on input, upper case everywhere else. */
export const ULID_PATTERN = /^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/;

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Returns the upper-case form of a ULID, or null if the text is not a ULID. */
export function parseUlid(text: string): string | null {
  return ULID_PATTERN.test(text) ? text.toUpperCase() : null;
}

const HIGHEST = '7ZZZZZZZZZZZZZZZZZZZZZZZZZ';

/**
 * Returns the next higher ULID. Throws RangeError after the highest, which no clock reaches before the year 10889. Also
 * throws for text that is not an upper-case ULID, because it would sort in the wrong place.
 */
export function incrementUlid(id: string): string {
  if (parseUlid(id) !== id || id === HIGHEST) throw new RangeError(`no ULID follows ${id}`);
  for (let i = id.length - 1; i >= 0; i--) {
    const digit = DIGITS.indexOf(id.charAt(i));
    if (digit < DIGITS.length - 1) {
      return id.slice(0, i) + DIGITS.charAt(digit + 1) + DIGITS.charAt(0).repeat(id.length - 1 - i);
    }
  }
  throw new RangeError(`no ULID follows ${id}`);
}

/**
 * Returns the id of the event after `last`: the candidate if it is higher, else `last + 1`. Ids strictly increase within a
 * Thread, even when clocks step back or two pods write concurrently (docs/spec/decisions.md#log).
 */
export function followingId(last: string | null, candidate: string): string {
  return last === null || candidate > last ? candidate : incrementUlid(last);
}
