/** Writes docs/api/openapi.json from the contract in dist/. That it is what the contract gives: libs/contract/openapi.unit.spec.ts. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const { openApiDocument } = await import('../dist/libs/contract/index.js');
const path = join(dirname(import.meta.dirname), 'docs/api/openapi.json');
const options = { ...(await resolveConfig(path)), filepath: path };
await writeFile(path, await format(JSON.stringify(openApiDocument('/api/v1'), null, 2), options));
