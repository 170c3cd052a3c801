import { z } from 'zod';

/** A bare ULID, accepted in either case, upper case from here on (docs/spec/decisions.md#ids). */
export const ulid = z
  .string()
  .regex(/^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/, 'must be a ULID')
  .toUpperCase()
  .meta({ format: 'ulid', description: 'A ULID, in upper or lower case.' });

/** A ULID as it is answered. */
export const answeredUlid = z
  .string()
  .regex(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
  .meta({ format: 'ulid', description: 'A ULID, always in upper case.' });

/** RFC 3339 in UTC with milliseconds. */
export const dateTime = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC, with milliseconds.' });

/**
 * Text of callers. Lengths count Unicode characters; NUL and lone surrogates are refused
 * (docs/spec/decisions.md#text).
 */
export function text(min: number, max: number) {
  return z
    .string()
    .check(({ value, issues }) => {
      const message = textProblem(value, min, max);
      if (message !== null) issues.push({ code: 'custom', message, input: value });
    })
    .meta({ minLength: min, maxLength: max });
}

function textProblem(value: string, min: number, max: number): string | null {
  // A character is one or two UTF-16 units: only between the bounds must they be counted.
  const tooLong = value.length > max && (value.length > 2 * max || countCharacters(value) > max);
  if (tooLong) return `must have at most ${max} characters`;
  if (value.length < min) return min === 1 ? 'must not be empty' : `must have at least ${min} characters`;
  return value.includes('\0') || !value.isWellFormed() ? 'must not contain NUL or lone surrogates' : null;
}

/** Unicode code points. */
export function countCharacters(value: string): number {
  let count = value.length;
  for (let i = 1; i < value.length; i++) {
    // Only a high surrogate and the low one after it are one character together.
    if ((value.charCodeAt(i) & 0xfc00) !== 0xdc00 || (value.charCodeAt(i - 1) & 0xfc00) !== 0xd800) continue;
    count--;
    i++;
  }
  return count;
}

/** Base64 with padding. Checked by its alphabet and length: a pattern over megabytes would be the most expensive check. */
export const base64 = z
  .string()
  .refine((value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value), 'must be base64')
  .meta({
    contentEncoding: 'base64',
    // What the check above comes to.
    pattern: '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  });

/**
 * A list whose length is checked before its items are: zod reports every wrong item, and a body of 8 MiB has room for
 * millions of them.
 */
export function list<Item extends z.ZodType>(item: Item, min: number, max: number) {
  const message = `must have at most ${max} items`;
  return z.preprocess(
    (value, { issues }) => {
      if (!Array.isArray(value) || value.length <= max) return value;
      issues.push({ code: 'custom', message, input: value });
      return z.NEVER;
    },
    z.array(item).min(min, 'must have at least 1 item').max(max, message),
  );
}

/** A whole number in a query string: digits only. */
export function queryInteger(min: number, max: number) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
    z.int('must be a whole number').min(min, `must be at least ${min}`).max(max, `must be at most ${max}`),
  );
}

/** A list of different values in a query string, separated by commas. Repeats count once. */
export function queryList<Values extends z.util.EnumLike>(value: z.ZodEnum<Values>) {
  const { options } = value;
  return z.preprocess((given, { issues }) => {
    const values = typeof given === 'string' ? [...new Set(given.split(','))] : [given];
    if (values.every((one) => value.safeParse(one).success)) return values;
    issues.push({ code: 'custom', message: `must be a comma-separated list of ${options.join(', ')}`, input: given });
    return z.NEVER;
  }, z.array(value).min(1).max(options.length));
}
