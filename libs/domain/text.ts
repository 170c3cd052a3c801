/**
 * Removes NUL and replaces lone surrogates, because `jsonb` of PostgreSQL rejects both. For text of models and tools. Such
 * text of callers is rejected instead (docs/spec/decisions.md#text).
 */
export function storableText(text: string): string {
  return (text.includes('\0') ? withoutNul(text) : text).toWellFormed();
}

const UNITS_TOGETHER = 8_192;

/**
 * Copies all UTF-16 units except NUL. `split` and `replace` allocate an object for each NUL, and a million of them take the
 * garbage collector long. `apply` reads an array three times as fast as the spread syntax does.
 */
function withoutNul(text: string): string {
  const units = new Array<number>(UNITS_TOGETHER).fill(0);
  let kept = '';
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) continue;
    units[count++] = unit;
    if (count < UNITS_TOGETHER) continue;
    kept += String.fromCharCode.apply(null, units);
    count = 0;
  }
  return kept + String.fromCharCode.apply(null, units.slice(0, count));
}

/** Returns whether `storableText` would leave the text unchanged. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const HIGH_SURROGATES = { from: 0xd8_00, to: 0xdb_ff };

/** Returns at most the first `length` UTF-16 units. Never cuts a surrogate pair, because `jsonb` rejects a half. */
export function beginningOf(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  const isHalf = text.length > length && last >= HIGH_SURROGATES.from && last <= HIGH_SURROGATES.to;
  return text.slice(0, isHalf ? length - 1 : length);
}
