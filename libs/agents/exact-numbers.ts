import { randomUUID } from 'node:crypto';

/** A number of JSON. Its first group is the integer that it writes without an exponent, if it writes one. */
const NUMBER = /(-?\d+)(?:\.0+)?(?![.\deE])|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** Fewer digits are always exact, and only an exponent makes them infinite. */
const MAY_BE_INEXACT = /\d{16}|\d[eE]\+?\d/;

const [QUOTE, BACKSLASH, MINUS, ZERO, NINE] = [34, 92, 45, 48, 57];

/**
 * Returns the text of JSON with each number replaced that a double cannot hold: an integer whose value would change, and a number
 * that would be infinite. Fractions may be rounded, because everybody expects that of them. Linear in the length of the text.
 */
export function replaceInexact(json: string, replace: (number: string) => string): string {
  if (!MAY_BE_INEXACT.test(json)) return json;
  let replaced = '';
  let from = 0;
  for (let at = 0; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) at = endOfText(json, at);
    else if (unit === MINUS || (unit >= ZERO && unit <= NINE)) {
      NUMBER.lastIndex = at;
      const [number, integer] = NUMBER.exec(json) ?? [];
      if (number === undefined) continue;
      if (isInexact(number, integer)) {
        replaced += json.slice(from, at) + replace(number);
        from = at + number.length;
      }
      at += number.length - 1;
    }
  }
  return replaced + json.slice(from);
}

/** Returns the first number in a text of JSON that a double cannot hold, null if there is none. */
export function firstInexact(json: string): string | null {
  let first: string | null = null;
  replaceInexact(json, (number) => {
    first ??= number;
    return number;
  });
  return first;
}

/** Before a number that a double cannot hold. Nobody else can know it, so no text of a message begins with it. */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Parses JSON. Numbers that a double cannot hold become marks, which `stringifyExactly` writes as they were. Throws SyntaxError. */
export function parseExactly(json: string): unknown {
  return JSON.parse(replaceInexact(json, (number) => `"${MARK}${number}"`));
}

export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value).replace(MARKED, '$1');
}

export const isMark = (value: unknown): boolean => typeof value === 'string' && value.startsWith(MARK);

function isInexact(number: string, integer: string | undefined): boolean {
  const value = Number(number);
  return !Number.isFinite(value) || (integer !== undefined && BigInt(integer) !== BigInt(value));
}

/** Returns the place of the quotation mark that ends the text that begins at `start`. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}
