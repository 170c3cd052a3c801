import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (name) => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));
const { packages, retired, published } = read('finished-packages.json');

/** Each retired word of code, and each phrase that documents must not use, with its replacement. */
const WORDS = [
  ...Object.entries(retired).map(([pattern, instead]) => [new RegExp(pattern, 'g'), instead]),
  ...read('retired-phrases.json').map(([pattern, instead]) => [new RegExp(`\\b(?:${pattern})\\b`, 'gi'), instead]),
];

/** The folders of the finished packages. */
export const FOLDERS = packages;

/** The TypeScript and SQL of the finished packages, as pathspecs of Git. Released migrations never change. */
export const FINISHED = [
  ...packages.flatMap((folder) => ['ts', 'tsx', 'mts', 'mjs', 'sql'].map((type) => `${folder}/**.${type}`)),
  ':!libs/event-store/migrations/0*',
];

/** Returns the retired words in names, comments, strings and test names. Published names are left out. */
export function retiredWords(text) {
  for (const name of published) text = text.replaceAll(name, '_'.repeat(name.length));
  return WORDS.flatMap(([pattern, instead]) =>
    [...text.matchAll(pattern)].map(({ index, 0: found }) => {
      const lines = text.slice(0, index).split('\n');
      return { line: lines.length, column: lines.at(-1).length + 1, found: found.trim(), instead };
    }),
  );
}
