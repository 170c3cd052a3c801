import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configSchema } from '#platform';
import { GENERATED, LIMITS_PAGE, TABLES, withLimitTables } from './limits-docs.ts';

const page = readFileSync(join(import.meta.dirname, '../..', LIMITS_PAGE), 'utf8');

test('the tables of limits.md are up to date; if not, run `npm run settings`, read the diff and commit it', () => {
  expect(withLimitTables(page)).toBe(page);
  expect([...page.matchAll(GENERATED)].map(([, , name]) => name)).toEqual(Object.keys(TABLES));
});

test('limits.md names every setting that limits callers', () => {
  const settings = Object.keys(configSchema.shape).filter((name) => /LIMIT|_PER_|_AGE_/.test(name));
  expect(settings.filter((name) => !page.includes(`| \`${name}\``))).toEqual([
    // Runs beyond these limits wait. No request is refused.
    ...['RUN_MEMORY_PERCENT_PER_ORGANIZATION', 'SLOTS_PERCENT_PER_ORGANIZATION'],
    ...['RATE_LIMIT_PER_MINUTE', 'RATE_LIMIT_STORE', 'STREAMS_PER_TOKEN'],
  ]);
});
