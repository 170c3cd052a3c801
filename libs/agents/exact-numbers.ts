import { randomUUID } from 'node:crypto';
import { BOUNDS } from '#domain';

/** A JSON number. Group 1 is its value, if that is written as an integer without an exponent. */
const NUMBER = /(-?\d+)(?:\.0+)?(?![.\deE])|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** Integers of up to 15 digits are exact, and only an exponent makes a shorter number infinite. */
const MAY_BE_INEXACT = /\d{16}|\d[eE]\+?\d/;

/** The digits before and after the point, and the exponent. */
const PARTS = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const MAX_WRITTEN = BOUNDS.answers.number.value;

const [QUOTE, BACKSLASH, MINUS, ZERO, NINE] = [34, 92, 45, 48, 57];

/**
 * Returns the JSON text, with each number replaced that a double cannot hold: an integer whose value would change, or a number
 * that would be infinite. Rounded fractions do not count, because JSON parsers always round them. Takes time linear in the text.
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

/** Returns the first number of a JSON text that a double cannot hold, null if there is none. */
export function firstInexact(json: string): string | null {
  let first: string | null = null;
  replaceInexact(json, (number) => {
    first ??= number;
    return number;
  });
  return first;
}

/** The prefix of a number that a double cannot hold. It is random, so no string of a message begins with it. */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Parses JSON. Numbers that a double cannot hold become marked strings for `stringifyExactly`. Throws SyntaxError. */
export function parseExactly(json: string): unknown {
  return JSON.parse(replaceInexact(json, (number) => `"${MARK}${number}"`));
}

/** Writes JSON. Marked strings become the numbers that they were. */
export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value).replace(MARKED, '$1');
}

export const isMark = (value: unknown): boolean => typeof value === 'string' && value.startsWith(MARK);

function isInexact(number: string, integer: string | undefined): boolean {
  const value = Number(number);
  if (!Number.isFinite(value)) return true;
  if (integer !== undefined) return BigInt(integer) !== BigInt(value);
  // No double is 10^23 exactly, but 1e23 is written back as 1e+23.
  const written = number.length > MAX_WRITTEN ? null : integerOf(number);
  return written !== null && written !== integerOf(String(value));
}

/** Returns the significant digits and the length of an integer, however it is written; null if it is a fraction. */
function integerOf(number: string): string | null {
  const [, whole = '', fraction = '', exponent = '0'] = PARTS.exec(number) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const length = digits.length - fraction.length + Number(exponent);
  return significant.length > length ? null : `${significant} of ${length}`;
}

/** Returns the index of the quotation mark that ends the string that begins at `start`. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}
