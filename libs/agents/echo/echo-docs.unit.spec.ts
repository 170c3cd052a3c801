import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ECHO_COMMANDS } from './echo-commands.ts';

it.each(['docs/echo.md', 'README.md'])('%s lists the commands there are, in their words', (file) => {
  const page = readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');
  const listed = page.split('\n').filter((line) => line.startsWith('| `/'));
  expect(listed).toEqual(ECHO_COMMANDS.map(({ example, does }) => `| \`${example}\` | ${does} |`));
});
