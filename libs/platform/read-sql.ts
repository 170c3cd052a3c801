import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the text of an SQL file. In a bundle, scripts/bundle.mjs replaces this function with one that contains the texts. */
export function readSql(directory: string, fileName: string): string {
  return readFileSync(join(directory, fileName), 'utf8');
}
