/** Writes the OpenAPI documents of docs/ from the contract in dist/. libs/contract/openapi.unit.spec.ts compares them. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const { adminOpenApiDocument, openApiDocument } = await import('../dist/libs/contract/index.js');
const documents = { 'docs/api': openApiDocument('/api/v1'), 'docs/admin': adminOpenApiDocument('/admin/v1') };
const root = dirname(import.meta.dirname);

for (const [folder, document] of Object.entries(documents)) {
  const path = join(root, folder, 'openapi.json');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(document, null, 2));
  // Runs the command, because only the command reads settings with comments.
  execFileSync(join(root, 'node_modules/.bin/oxfmt'), [path], { cwd: root });
}
