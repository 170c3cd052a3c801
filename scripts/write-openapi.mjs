/** Writes the OpenAPI documents of docs/ from the contract in dist/. libs/contract/openapi.unit.spec.ts compares them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { format } from 'oxfmt';

const { adminOpenApiDocument, openApiDocument } = await import('../dist/libs/contract/index.js');
const documents = { 'docs/api': openApiDocument('/api/v1'), 'docs/admin': adminOpenApiDocument('/admin/v1') };
const options = JSON.parse(await readFile(new URL('../.oxfmtrc.json', import.meta.url), 'utf8'));

for (const [folder, document] of Object.entries(documents)) {
  const path = join(dirname(import.meta.dirname), folder, 'openapi.json');
  await mkdir(dirname(path), { recursive: true });
  const { code } = await format(path, JSON.stringify(document, null, 2), options);
  await writeFile(path, code);
}
