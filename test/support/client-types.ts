import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { installOpenApiTools } from './openapi-tools.ts';

export const CLIENT_TYPES = resolve('libs/client/generated/api.ts');

/** Types that the package does not use, because they describe paths. */
const UNUSED = /^export type (?:paths|webhooks|\$defs|operations) = .*\n/gm;

/** Returns the part of the OpenAPI document whose types libs/client takes. */
async function readSchemas(): Promise<string> {
  const { openapi, info, components } = JSON.parse(await readFile('docs/api/openapi.json', 'utf8')) as {
    openapi: string;
    info: object;
    components: { schemas: object };
  };
  return JSON.stringify({ openapi, info, paths: {}, components: { schemas: components.schemas } });
}

/** Returns the first line of the types: the hash of their schemas. It shows the gate, without the generator, that they are current. */
export async function firstLine(): Promise<string> {
  return `// Of schemas with SHA-256 ${createHash('sha256')
    .update(await readSchemas())
    .digest('hex')}.`;
}

export async function generateClientTypes(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spool-client-types-'));
  try {
    await writeFile(join(folder, 'schemas.json'), await readSchemas());
    await installOpenApiTools().run(folder, 'openapi-typescript', ['schemas.json', '-o', 'types.ts']);
    const types = await readFile(join(folder, 'types.ts'), 'utf8');
    return `${await firstLine()}\n${types.replace(UNUSED, '')}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
