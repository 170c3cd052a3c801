import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BOUNDS } from '#domain';
import { BOUNDS_PAGE, withBounds } from './bounds-docs.ts';
import { GENERATED } from './limits-docs.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, BOUNDS_PAGE), 'utf8');

test('the bounds in reliability.md are up to date; if not, run `npm run settings`, read the diff and commit it', () => {
  expect(withBounds(page)).toBe(page);
  expect([...page.matchAll(GENERATED)].map(([, , name]) => name)).toEqual(['bounds']);
});

test('the code uses each bound', () => {
  const sources = ['apps', 'libs'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !/(\.(spec|testing)|-docs)\.ts$|(^|\/)node_modules\//.test(path))
      .map((path) => readFileSync(join(root, folder, path), 'utf8')),
  );
  const used = new Set(sources.flatMap((source) => source.match(/\bBOUNDS\.\w+\.\w+(?=\.value\b)/g) ?? []));
  const keys = Object.entries(BOUNDS).flatMap(([input, bounds]) =>
    Object.keys(bounds).map((key) => `BOUNDS.${input}.${key}`),
  );
  expect([...used].toSorted()).toEqual(keys.toSorted());
});
