/** Writes the types that libs/client takes from docs/api/openapi.json. Needs dist/ and, at first use, the npm registry. */
import { writeFile } from 'node:fs/promises';
import { CLIENT_TYPES, generateClientTypes } from '../dist/test/support/client-types.js';

await writeFile(CLIENT_TYPES, await generateClientTypes());
