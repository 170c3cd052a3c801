import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FILE_TOOLS } from './file-tools.ts';

it('docs/tools-files.md lists the tools there are, with their input', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/tools-files.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `(\w+ \{.*?\})` \|/gm)].map(([, tool]) => tool);
  const tools = FILE_TOOLS.map(({ name, inputSchema }) => {
    const { properties, required = [] } = inputSchema as { properties: object; required?: string[] };
    const names = Object.keys(properties).map((key) => (required.includes(key) ? key : `${key}?`));
    return `${name} {${names.join(', ')}}`;
  });
  expect(listed).toEqual(tools);
});
