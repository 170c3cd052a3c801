/** Writes the OpenAPI documents in docs/ from the contract in dist/. That they are what it gives: the openapi.unit.spec.ts. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const { adminOpenApiDocument, openApiDocument } = await import('../dist/libs/contract/index.js');
const documents = { 'docs/api': openApiDocument('/api/v1'), 'docs/admin': adminOpenApiDocument('/admin/v1') };

for (const [folder, document] of Object.entries(documents)) {
  const path = join(dirname(import.meta.dirname), folder, 'openapi.json');
  await mkdir(dirname(path), { recursive: true });
  const options = { ...(await resolveConfig(path)), filepath: path };
  await writeFile(path, await format(JSON.stringify(document, null, 2), options));
}
