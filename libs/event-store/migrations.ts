import { join } from 'node:path';
import { listSql, readSql } from '#platform';

const FOLDER = join(import.meta.dirname, 'migrations');
/** Recorded names end with this number and the number of the file, because TypeORM orders migrations by a time in their name. */
const TIME = 176_370_000;

export interface Migration {
  /** The recorded name, such as `Files1763700000002`. */
  name: string;
  text: string;
}

/** All migrations, oldest first. Released ones are never edited, and each works with the previous release. */
export const MIGRATIONS: readonly Migration[] = listSql(FOLDER).map((fileName) => ({
  name: recordedName(fileName),
  text: readSql(FOLDER, fileName),
}));

const repeated = MIGRATIONS.find(({ name }, i) => name.slice(-4) === MIGRATIONS[i - 1]?.name.slice(-4));
if (repeated) throw new Error(`Two migrations have the number of ${repeated.name}.`);

/** Returns `ClientExternalRef1763700000004` for `0004-client-external-ref.sql`. */
function recordedName(fileName: string): string {
  const [, number = '', words = ''] = /^(\d{4})-([a-z-]+)\.sql$/.exec(fileName) ?? [];
  if (number === '') throw new Error(`The migration ${fileName} is not named like 0001-some-words.sql.`);
  return `${words.replaceAll(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase())}${TIME}${number}`;
}
