import { InvalidArgumentError } from 'commander';

const UNITS = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 } as const;
const FORMS = 'a duration such as 30d or 12h, or a time such as 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z';

/** `90s`, `30m`, `12h`, `30d`, `2w`: seconds. Throws InvalidArgumentError. */
export function parseDuration(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError('It must be a duration such as 90s, 30m, 12h, 30d or 2w.');
  return Number(count) * UNITS[unit as keyof typeof UNITS];
}

/** A time to come: `30d` from now, or a date. RFC 3339. Throws InvalidArgumentError. */
export const parseExpiry = (text: string): string => parseTime(text, +1);

/** A time that has been: `30d` ago, or a date. RFC 3339. Throws InvalidArgumentError. */
export const parseSince = (text: string): string => parseTime(text, -1);

/** As `parseExpiry`, or null for `never`. */
export const parseNewExpiry = (text: string): string | null => (text === 'never' ? null : parseExpiry(text));

function parseTime(text: string, direction: 1 | -1): string {
  if (/^\d+[a-z]$/.test(text)) return new Date(Date.now() + direction * parseDuration(text) * 1_000).toISOString();
  // What Date makes of 2027-02-30 or of a time without an offset is not what was meant.
  const [, date, time] = /^(\d{4}-\d\d-\d\d)(T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const ms = Date.parse(`${date}${time ?? 'T00:00:00Z'}`);
  const isReal = date !== undefined && new Date(`${date}T00:00:00Z`).toJSON()?.startsWith(date);
  if (!isReal || Number.isNaN(ms)) throw new InvalidArgumentError(`It must be ${FORMS}.`);
  return new Date(ms).toISOString();
}
