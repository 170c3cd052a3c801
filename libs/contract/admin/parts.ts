import { z } from 'zod';
import { list, queryInteger, text, ulid } from '../scalars.ts';

/** Schemas that several groups of operations share. */
export const nothing = z.object({});
export const emptyBody: z.ZodNull | null = null;

export const ADMIN_LIMITS = {
  name: 255,
  page: 100,
  manifests: 200,
  agentsAToken: 100,
  organizationsAPerson: 100,
  version: 999_999_999,
  /** Characters of the input, and of the output, that the timeline of a Run has. */
  runText: 20_000,
  /** Runs of a bulk action. */
  bulkRuns: 10_000,
  /** The largest limits of a token: requests per minute, and open streams. */
  tokenLimit: 1_000_000,
} as const;

export const newName = text(1, ADMIN_LIMITS.name);

/** Query of a page. Lists are ordered by id, newest first, so the last id of a page is the cursor of the next one. */
export const page = {
  limit: queryInteger(1, ADMIN_LIMITS.page)
    .default(ADMIN_LIMITS.page)
    .meta({ description: 'The maximum number of items in the page.' }),
  cursor: ulid.optional().meta({ description: '`nextCursor` of the previous page.' }),
};

export const nextCursor = z.string().nullable().meta({ description: 'Null at the end.' });

const FIRST_TIME = Date.UTC(1970);
const LAST_TIME = Date.UTC(10_000) - 1;

/** A time that a caller gives, with any offset; in UTC from here on, and of a year that RFC 3339 can write. */
export const time = z.iso
  .datetime({ offset: true, abort: true, error: 'must be a time such as 2027-01-31T12:00:00Z' })
  .refine(
    (value) => Date.parse(value) >= FIRST_TIME && Date.parse(value) <= LAST_TIME,
    'must be in the years 1970 to 9999',
  )
  .transform((value) => new Date(value).toISOString());

/** Returns a list of ids with separate bounds. */
export const ulids = (min: number, max: number) => list(ulid, min, max);

export const flag = z
  .enum(['true', 'false'])
  .optional()
  .transform((value) => (value === undefined ? undefined : value === 'true'));

export const ok = z.strictObject({ ok: z.literal(true) });

export const count = z.int().min(0);
