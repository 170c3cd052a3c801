/**
 * Writes .env.example, docs/operations/settings.md and the tables of docs/api/limits.md from what dist/ holds.
 * settings-docs.unit.spec.ts and limits-docs.unit.spec.ts compare them.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const { envExample, SETTINGS_PAGE, settingsPage } = await import('../dist/libs/platform/process/settings-docs.js');
const { LIMITS_PAGE, withLimitTables } = await import('../dist/apps/api/limits-docs.js');
const root = dirname(import.meta.dirname);
const limitsPage = join(root, LIMITS_PAGE);
await writeFile(join(root, '.env.example'), envExample());
await writeFile(join(root, SETTINGS_PAGE), settingsPage());
await writeFile(limitsPage, withLimitTables(await readFile(limitsPage, 'utf8')));
