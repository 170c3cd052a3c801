import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { blocksOf } from '../support/documented-clients.ts';

const EXAMPLE = resolve('examples/chat');
const textOf = (file: string): string => readFileSync(join(EXAMPLE, file), 'utf8');

test('examples/chat has at most 150 lines, and docs/api/chat.md shows its programs', () => {
  const files = readdirSync(EXAMPLE).filter((file) => /\.(html|jsx|mjs)$/.test(file));
  expect(files.map(textOf).join('').split('\n').length - 1).toBeLessThanOrEqual(150);
  const shown = blocksOf('chat.md').map(({ file, code }) => [file, code]);
  expect(shown).toEqual(['server.mjs', 'page.jsx'].map((file) => [file, textOf(file)]));
});
