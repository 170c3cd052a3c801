/** Writes .env.example and docs/operations/settings.md from the schema in dist/. libs/platform/settings-docs.unit.spec.ts compares them. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const { envExample, SETTINGS_PAGE, settingsPage } = await import('../dist/libs/platform/settings-docs.js');
const root = dirname(import.meta.dirname);
await writeFile(join(root, '.env.example'), envExample());
await writeFile(join(root, SETTINGS_PAGE), settingsPage());
