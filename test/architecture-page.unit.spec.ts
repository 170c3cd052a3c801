import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
const lines = page.split('\n');
const prose = page.replaceAll(/^```[^]*?^```$/gm, '');

/** Returns the names in backticks that are paths of the repository. */
function pathsIn(text: string): string[] {
  const names = [...text.matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name);
  return names.filter((name) => /^(apps|docker|docs|libs|scripts|test)\/|^\.[a-z]+[-.]/.test(name));
}

/** Returns the sentences of prose, list items and table cells. */
function sentencesIn(text: string): string[] {
  const parts = text.split('\n').flatMap((line) => (line.startsWith('|') ? line.split('|') : [line]));
  return parts.flatMap((part) => part.replaceAll('→', ',').split(/(?<=[.!?])\s+/));
}

test('ARCHITECTURE.md names only files and folders that exist', () => {
  const paths = pathsIn(prose);
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('ARCHITECTURE.md can be read in ten minutes: at most 200 lines, with sentences of at most 25 words', () => {
  expect(lines.length).toBeLessThanOrEqual(201);
  const words = (sentence: string): number => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;
  expect(sentencesIn(prose).filter((sentence) => words(sentence) > 25)).toEqual([]);
});
