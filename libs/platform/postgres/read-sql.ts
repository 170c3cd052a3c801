import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the text of an SQL file. In a bundle, scripts/bundle.mjs replaces this function with one that contains the texts. */
export function readSql(directory: string, fileName: string): string {
  return readFileSync(join(directory, fileName), 'utf8');
}

/** Returns the names of the SQL files in a folder, in their order. In a bundle, scripts/bundle.mjs replaces it too. */
export function listSql(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .toSorted();
}
