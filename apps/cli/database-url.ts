import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig, StartError } from '#platform';

/**
 * The database that commands work on: DATABASE_URL, else the embedded PostgreSQL of a running standalone, which leaves its
 * URL in the data directory. Throws StartError.
 */
export async function findDatabaseUrl(env: Record<string, string | undefined>): Promise<string> {
  const { DATABASE_URL, DATA_DIR } = loadConfig(env);
  if (DATABASE_URL !== undefined) return DATABASE_URL;
  const file = join(DATA_DIR, 'database.url');
  const url = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? `there is no ${file}` : `${file} cannot be read: ${error.code}`;
    throw new StartError(
      `No database is configured (${why}). Run npm start, set DATA_DIR as npm start has it, or set DATABASE_URL.`,
    );
  });
  return url.trim();
}
