/**
 * Writes .env.example, docs/operations/settings.md, the tables of docs/api/limits.md and the bounds of docs/reliability.md from
 * what dist/ holds. settings-docs.unit.spec.ts, limits-docs.unit.spec.ts and bounds-docs.unit.spec.ts compare them.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const { envExample, SETTINGS_PAGE, settingsPage } = await import('../dist/libs/platform/process/settings-docs.js');
const { LIMITS_PAGE, withLimitTables } = await import('../dist/apps/api/limits-docs.js');
const { BOUNDS_PAGE, withBounds } = await import('../dist/apps/api/bounds-docs.js');
const root = dirname(import.meta.dirname);
await writeFile(join(root, '.env.example'), envExample());
await writeFile(join(root, SETTINGS_PAGE), settingsPage());
for (const [page, withTables] of [
  [join(root, LIMITS_PAGE), withLimitTables],
  [join(root, BOUNDS_PAGE), withBounds],
])
  await writeFile(page, withTables(await readFile(page, 'utf8')));
