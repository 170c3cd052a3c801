import { readFile } from 'node:fs/promises';
import { CLIENT_TYPES, firstLine } from '../support/client-types.ts';

test('the types of @spool/client are of the present OpenAPI document; if not: npm run client-types', async () => {
  const [line] = (await readFile(CLIENT_TYPES, 'utf8')).split('\n');
  expect(line).toBe(await firstLine());
});
