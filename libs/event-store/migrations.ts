import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'migrations');

export interface Migration {
  /** The name in the table `migrations`. TypeORM sorts by the timestamp at its end. */
  name: string;
  /** The path of its SQL. */
  path: string;
}

/**
 * All migrations of this release, oldest first: the files of `migrations/`. `0002-files.sql` is `Files1763700000002`.
 * Released files are never edited or renamed, and each works with the previous release.
 */
export const MIGRATIONS: readonly Migration[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .sort()
  .map((file) => ({ name: nameOf(file), path: join(FOLDER, file) }));

function nameOf(file: string): string {
  const [number = '', ...words] = file.replace(/\.sql$/, '').split('-');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return `${name}176370000${number}`;
}
