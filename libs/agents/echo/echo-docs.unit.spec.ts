import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ECHO_COMMANDS } from './echo-commands.ts';

it('docs/echo.md lists the commands there are, in their words', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/echo.md'), 'utf8');
  const listed = page.split('\n').filter((line) => line.startsWith('| `/'));
  expect(listed).toEqual(ECHO_COMMANDS.map(({ example, does }) => `| \`${example}\` | ${does} |`));
});
